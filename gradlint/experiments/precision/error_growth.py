"""How the error of a low-precision gradient grows with the size of the tensors.

Sums that are kept in float32 lose a rounding or two, however long they are. Sums kept in a 16-bit
dtype stop growing after a few hundred terms. Each size of the sample is enlarged in turn, with
positive cotangents so that sums grow, and ‖g − g₆₄‖ / ‖g₆₄‖ is compared with that at the sample's
own size, with what one rounding of the inputs changes, and, before anything is said, with what
autograd loses through the operations of forward itself, and with what the operations of backward
lose if each of them is rounded once (:mod:`gradlint.numerics.emulated_rounding`): a recurrence that
forward keeps in 16 bits, a sum that cancels, or one that PyTorch's own kernel keeps in 16 bits,
loses as much in any backward.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from gradlint.experiments.baseline_comparison import jitter
from gradlint.experiments.differentiable_maps import first_order
from gradlint.experiments.forward_under_autograd import through_autograd
from gradlint.experiments.subject import Subject
from gradlint.inputs.resized import resizable, resized, tensors_of, tied_axes
from gradlint.model.sample import Sample
from gradlint.numerics.emulated_rounding import LONGEST_RUN, RoundedRuns
from gradlint.numerics.products import all_finite, norm, unit_roundoff, widened
from gradlint.numerics.timing import least_seconds
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import draws_random_numbers

#: A size is multiplied by at least the first, and is then at least the second: a bfloat16 sum of
#: positive terms stops growing after 256 of them.
LONGER, LONGEST = 64, 1024

#: Seconds of a longer forward call beyond which the other calls are not made.
SLOW_S = 0.1

#: Seconds up to which such a call is timed again, as a busy machine stalls one now and then.
TIMED_AGAIN_S = 2.0

#: Sizes of the sample that are tried, and elements that a longer sample may have.
MOST_SIZES, MOST_ELEMENTS = 2, 2**18

#: A relative error counts that is this many roundings, that many times the error at the sample, and
#: that many times what one rounding of inputs and cotangents changes (heuristic: sums in float32
#: stay within two roundings of a 16-bit dtype, random walks of 1024 roundings below ten).
ROUNDINGS, TIMES, CONDITION = 16.0, 16.0, 8.0

#: An error also has to exceed what n positive terms lose when they are added one by one in float32,
#: which is not wrong: at most n times this (Higham, Accuracy and Stability of
#: Numerical Algorithms, 2002, section 4.2).
ONE_BY_ONE = unit_roundoff(torch.float32)

#: An error also has to exceed what rounding every operation once loses, in emulated runs whose rms
#: counts, this many times. Measured with bfloat16 at 1024 terms: sums of normalisations that
#: cancel, and softmax over segments by ``index_add`` (which PyTorch keeps in bfloat16), lose up to
#: 1.4 times that, and a sum kept in bfloat16 row by row 12 times that.
PLAINLY, EMULATED_RUNS = 4.0, 4

#: An error also has to exceed what autograd loses through forward's own operations in that dtype,
#: this many times (heuristic: a smoothing in bfloat16 over 1024 steps lost 0.22 either way).
AUTOGRAD = 2.0

#: Where backward is too long to be emulated, the error has to exceed this, too, and :data:`TIMES`
#: what autograd loses (heuristic: forward-backward algorithms in float32, which subtract large
#: logarithms, lost 0.001 to 0.005 over 1024 steps, 50 times what autograd loses; a sum in 16 bits
#: that stands still lost 0.2 and more).
STANDS_STILL = 0.05

#: Calls that forward may make for that, and the relative difference in float64 up to which both are
#: the same gradient: a forward that stops gradients or rounds has another.
MOST_CALLS, SAME = 30_000, 1e-6

#: Cotangents lie between 1 - this and 1 + this.
SPREAD = 0.5


@dataclass(frozen=True)
class ErrorGrowth:
    """An error that grew: input ``position``, from ``before`` at ``size`` to ``after`` at
    ``longer``, where ``allowed`` was expected."""

    position: int
    size: int
    longer: int
    before: float
    after: float
    allowed: float


@dataclass(frozen=True)
class _Errors:
    """Errors of the gradients on one sample.

    Args:
        errors: ‖g − g₆₄‖ / ‖g₆₄‖ an input, or None.
        conditions: what rounding the inputs changes in float64, likewise.
        terms: no sum in the op has more terms than this.
    """

    errors: list[float | None]
    conditions: list[float | None]
    terms: int


def growing_errors(
    subject: Subject, positions: Sequence[int], left_out: list[str]
) -> Iterator[ErrorGrowth]:
    """The inputs ``positions`` whose error grows with a size, each once.

    Args:
        left_out: gets the sizes at which calls take too long, in words.
    """
    sample = subject.sample
    if subject.op.module is not None or not resizable(sample):
        return
    if draws_random_numbers(subject.problem):
        return  # other numbers are drawn in float64
    before: list[float | None] | None = None
    reported: set[int] = set()
    for size, axes in list(tied_axes(sample).items())[:MOST_SIZES]:
        longer = max(LONGER * size, LONGEST)
        change = dict.fromkeys(axes, longer)
        if max(_elements(sample, change), _asked_for(sample, size, longer)) > MOST_ELEMENTS:
            continue
        made = resized(sample, change, seed=subject.seed, integers={size: longer})
        slow = 0.0 if made is None else _too_slow(subject, made)
        if slow:
            left_out.append(f"sums of {longer} are left out: a call takes {slow:.2g} s")
            continue
        after = None if made is None else _errors(subject, made)
        if made is None or after is None:
            continue
        if before is None:
            found = _errors(subject, sample)
            before = [None] * len(after.errors) if found is None else found.errors
        for position in positions:
            error, condition = after.errors[position], after.conditions[position]
            small = before[position]
            if error is None or condition is None or small is None or position in reported:
                continue
            eps = unit_roundoff(subject.problem.inputs[position].value.dtype)
            allowed = max(
                ROUNDINGS * eps, TIMES * small, CONDITION * condition, ONE_BY_ONE * after.terms
            )
            if error > allowed:
                allowed = max(allowed, _inevitable_loss(subject, made, position, error, left_out))
            if error > allowed:
                reported.add(position)
                yield ErrorGrowth(position, size, longer, small, error, allowed)


def _elements(sample: Sample, change: dict[tuple[int, int], int]) -> int:
    total = 0
    for number, tensor in enumerate(tensors_of(sample)):
        shape = [change.get((number, axis), size) for axis, size in enumerate(tensor.shape)]
        total += math.prod(shape)
    return total


def _asked_for(sample: Sample, size: int, longer: int) -> int:
    """Elements of the largest shape among the arguments, with ``size`` replaced by ``longer``."""
    values = [*sample.args, *sample.kwargs.values()]
    shapes = [
        [longer if part == size else max(part, 1) for part in value]
        for value in values
        if isinstance(value, (list, tuple)) and all(type(part) is int for part in value)
    ]
    return max((math.prod(shape) for shape in shapes), default=0)


def _too_slow(subject: Subject, sample: Sample) -> float:
    """Seconds that a forward on ``sample`` takes where that is too long; else 0."""
    problem = subject.problem.at(sample)
    try:
        seconds = least_seconds(problem.forward, SLOW_S, most=TIMED_AGAIN_S)
    except (OpRaised, RuntimeError):
        return 0.0
    finally:
        subject.problem.forward_calls += problem.forward_calls
    return seconds if seconds > SLOW_S else 0.0


def _errors(subject: Subject, sample: Sample) -> _Errors | None:
    """The errors on ``sample``; None where the op does not run there."""
    low = subject.problem.at(sample)
    wide = low.in_float64()
    if wide is None:
        return None
    try:
        outputs = [o for o in low.linearize()[1] if o.name in subject.run.cotangents]
        generator = torch.Generator().manual_seed(subject.seed)
        cotangents = {o.name: _positive(o.value.detach(), generator) for o in outputs}
        got = low.pull(cotangents)
        wides = {name: widened(v) for name, v in cotangents.items()}
        expected = wide.pull(wides)
        rounded = [
            jitter(value.to(like.dtype), subject.seed).to(value.dtype)
            for value, like in zip(wide.values(), low.values(), strict=True)
        ]
        jittered = {
            name: jitter(v, subject.seed + 1).to(torch.float64) for name, v in cotangents.items()
        }
        nearby = wide.pull(jittered, rounded)
    except (OpRaised, RuntimeError):
        return None
    finally:
        subject.problem.forward_calls += low.forward_calls + wide.forward_calls
        subject.problem.backward_calls += low.backward_calls + wide.backward_calls
    pairs = [list(zip(side, expected, strict=True)) for side in (got, nearby)]
    errors, conditions = ([_relative(a, b) for a, b in side] for side in pairs)
    largest = max(tensor.numel() for tensor in [*low.values(), *cotangents.values()])
    return _Errors(errors, conditions, largest)


def _inevitable_loss(
    subject: Subject, sample: Sample, position: int, error: float, left_out: list[str]
) -> float:
    """The error that any backward may have on ``sample``; inf where it can't be told, which
    ``left_out`` gets. What costs more is asked only where ``error`` exceeds what is known."""
    plain = _loss_of_autograd(subject, sample, position)
    allowed = AUTOGRAD * (plain or 0.0)
    if error <= allowed:
        return allowed
    rounded = _rounding_loss(subject, sample, position)
    if rounded is not None:
        return max(allowed, PLAINLY * rounded)
    if plain is None:
        words = "long sums are left out: backward makes too many operations"
        left_out += [words] if words not in left_out else []
        return math.inf
    return max(TIMES * plain, STANDS_STILL)


def _loss_of_autograd(subject: Subject, sample: Sample, position: int) -> float | None:
    """‖g − g₆₄‖ / ‖g₆₄‖ of the gradient of input ``position`` on ``sample`` that autograd makes of
    forward's own operations; None where there is none, or where it is another one in float64."""
    low = subject.problem.at(sample)
    wide = low.in_float64()
    assert wide is not None, "its errors were measured before"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # forward was not written to run under autograd
        plain, exact = (through_autograd(subject, one, MOST_CALLS) for one in (low, wide))
        if plain is None or exact is None:
            return None
        generator = torch.Generator().manual_seed(subject.seed)
        try:
            outputs = [o for o in low.forward() if o.name in subject.run.cotangents]
            vs = {o.name: _positive(o.value, generator) for o in outputs}
            wides = {name: widened(v) for name, v in vs.items()}
            expected = wide.pull(wides)[position]
            other = _relative(exact.pull(wides)[position], expected)
            if other is None or other > SAME:
                return None
            return _relative(plain.pull(vs)[position], expected)
        except (OpRaised, RuntimeError):
            return None


def _rounding_loss(subject: Subject, sample: Sample, position: int) -> float | None:
    """‖g̃ − g₆₄‖ / ‖g₆₄‖ of the gradient of input ``position`` on ``sample``, where g̃ has every
    operation rounded to the low dtype once; rms over a few runs. None where there are too many
    operations to round them all: the later ones would be exact."""
    low = subject.problem.at(sample)
    wide = low.in_float64()
    assert wide is not None, "its errors were measured before"
    try:
        function = first_order(wide)
        generator = torch.Generator().manual_seed(subject.seed)
        like = [o.value for o in low.forward() if o.name in subject.run.cotangents]
        cotangents = [widened(_positive(y, generator)) for y in like]
        expected = function.gradients_at(function.values, cotangents)[position]
        runs = RoundedRuns(function, low.inputs[position].value.dtype, generator)
        losses: list[float] = []
        while len(losses) < EMULATED_RUNS and runs.operations < LONGEST_RUN:
            losses.append(_relative(runs.gradients(cotangents)[position], expected) or 0.0)
    except (OpRaised, RuntimeError):
        return 0.0
    finally:
        subject.problem.forward_calls += low.forward_calls + wide.forward_calls
        subject.problem.backward_calls += low.backward_calls + wide.backward_calls
    if runs.operations >= LONGEST_RUN:
        return None
    return math.sqrt(sum(loss * loss for loss in losses) / len(losses))


def _positive(output: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    drawn = torch.rand(output.shape, generator=generator, dtype=torch.float64)
    return (1.0 + SPREAD * (2.0 * drawn - 1.0)).to(device=output.device, dtype=output.dtype)


def _relative(got: torch.Tensor | None, expected: torch.Tensor | None) -> float | None:
    if got is None or expected is None or got.shape != expected.shape:
        return None
    if not all_finite(got) or not all_finite(expected) or not norm(expected):
        return None
    return norm(widened(got) - widened(expected)) / norm(expected)
