"""Outputs that overflow although their value is representable: a low dtype against float64.

The op is run in the low dtype with one input at magnitudes at which exp overflows there, and in
float64 at exactly the same values. Where the first is not finite and the second is, and lies well
inside the range of the low dtype, an intermediate overflowed or vanished. An output that has other
elements beyond that range is left out: inputs this large are not meant for the op (a recurrence
that grows with every step). So are elements whose float64 value has no meaning there: it changes
far more than the inputs, and otherwise than backward says, since an iteration does not converge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from gradlint.experiments.finite.extremes import ranges_of
from gradlint.experiments.finite.special_values import is_log_of_scale, saturated
from gradlint.experiments.iterations import iterates_longer
from gradlint.experiments.subject import Subject
from gradlint.model.sample import map_tensors
from gradlint.numerics.products import dense, real_dot, widened
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem

#: Magnitudes of an input, by dtype: around the largest argument of exp (88.7 in float32 and
#: bfloat16, 11.1 in float16), and its square in float16.
MAGNITUDES = {
    torch.float32: (20.0, 150.0),
    torch.bfloat16: (20.0, 150.0),
    torch.float16: (3.0, 300.0),
}

#: Magnitudes of the logarithm of a scale, whose exp is itself a number that the op computes with:
#: here the square of that number fits into the dtype (heuristic: nobody has a scale of exp(150)).
OF_SCALES = {
    torch.float32: (20.0, 40.0),
    torch.bfloat16: (20.0, 40.0),
    torch.float16: (2.0, 4.5),
}

#: Factor of the smaller magnitudes at which the op is run too where it does not accept float64.
SMALLER = 0.3

#: Values beyond the dtype's largest to this power may overflow legitimately: the square of such a
#: value, as a loss or a variance takes it, is out of range by itself (1.8e19 in float32). Float16
#: has too few powers of ten for that (heuristic: 4000).
IN_RANGE = {torch.float32: 0.5, torch.bfloat16: 0.5, torch.float16: 0.75}

#: Relative change of the inputs by one rounding of float32; how many times more an output changes
#: where its digits mean little (heuristic: exp(150) changes 150 times more, exp(-150²) 45000 times,
#: as its derivative says); and the share of that by which its gradient must miss it.
SHIFT, AMPLIFIED, CLAIMED = 2.0**-24, 1000.0, 0.5

#: Inputs that are tried, from the first.
MOST_INPUTS = 3

#: Why an op is not looked at whose outputs are of a subclass of tensors that keeps its dtype.
FIXED_DTYPE = "an output refuses another dtype"


@dataclass(frozen=True)
class Overflow:
    """One output that is not finite in ``dtype``.

    Args:
        position: of the input at large values; ``largest``: its largest magnitude.
        output: name of the output; ``index``: the first element; ``count``: how many.
        returned: what it is; ``value``: what it should be; None without a float64 run.
        depends_on_signs: whether the inputs were guessed, and whether it overflows depends on
            the signs of the others: of a rate that must be negative, a density that must not.
        iterates: whether forward iterates there for much longer than at the sample: it starts too
            far from what it looks for.
    """

    dtype: torch.dtype
    position: int
    largest: float
    output: str
    index: list[int]
    count: int
    returned: float
    value: float | None
    depends_on_signs: bool = False
    iterates: bool = False


def low_problem(subject: Subject) -> Problem | str:
    """The op in its own dtype below float64, or else in float32; or the reason why not."""
    problem = subject.problem
    if problem.has_sparse_inputs or not problem.inputs:
        return "inputs are sparse" if problem.inputs else "no input requires grad"
    floating = {v.dtype for v in problem.values() if v.is_floating_point()}
    if not floating or not all(_changes_dtype(item.value) for item in subject.run.outputs):
        return FIXED_DTYPE if floating else "no input is real"
    if floating & set(MAGNITUDES):
        return problem
    if subject.op.module is not None:
        return "a module in float64; lower precision needs --dtype float32"
    device = str(problem.inputs[0].value.device)
    low = subject.problem.at(subject.sample.converted(torch.float32, device))
    try:
        outputs = low.forward()
    except OpRaised:
        return "the op refuses float32"
    same = [(o.name, o.value.shape) for o in subject.run.outputs]
    return low if [(o.name, o.value.shape) for o in outputs] == same else "float32 has other shapes"


def _changes_dtype(tensor: torch.Tensor) -> bool:
    """Whether a tensor can be taken to another dtype: a subclass may refuse it."""
    try:
        tensor.detach().to(torch.float32 if tensor.dtype == torch.float64 else torch.float64)
    except Exception:  # of a subclass: anything
        return False
    return True


def overflows(subject: Subject, low: Problem) -> Iterator[Overflow]:
    """The first output that overflows, for each input."""
    wide = low.in_float64()
    ranges = ranges_of(subject)
    for position, (value, allowed) in enumerate(
        list(zip(low.values(), ranges, strict=True))[:MOST_INPUTS]
    ):
        of_scale = is_log_of_scale(low.inputs[position].name)
        magnitudes = (OF_SCALES if of_scale else MAGNITUDES).get(value.dtype)
        if magnitudes is None or not value.numel() or allowed.rows:
            continue
        if not (allowed.holds(magnitudes[1]) or allowed.holds(-magnitudes[1])):
            continue
        found = _overflow(low, wide, position, low.values(), saturated(value, *magnitudes))
        if found is not None:
            guessed = subject.sample.origin == "inferred"
            signs = guessed and _depends_on_signs(low, wide, position, magnitudes)
            there = low.values()
            there[position] = saturated(value, *magnitudes)
            longer = iterates_longer(low, there)
            yield replace(found, depends_on_signs=signs, iterates=longer)
    own = 0 if low is subject.problem else low.forward_calls
    subject.problem.forward_calls += own + (wide.forward_calls if wide is not None else 0)


def _depends_on_signs(
    low: Problem, wide: Problem | None, position: int, magnitudes: tuple[float, float]
) -> bool:
    """Whether there is no sign of all large values with which it overflows whatever the sign of the
    other inputs and of the constants is."""
    sizes = [value.abs() if value.is_floating_point() else value for value in low.values()]
    large = saturated(sizes[position], *magnitudes)
    others = (1.0, -1.0) if len(sizes) > 1 else (1.0,)
    problems = [(low, wide), *_with_constants_of_one_sign(low, wide)]
    alone = len(problems) == len(others) == 1
    points = [[other * size for size in sizes] for other in others]
    found = [
        all(
            _overflow(*pair, position, point, sign * large) for pair in problems for point in points
        )
        for sign in (1.0, -1.0)
    ]
    return not alone and not any(found)


def _with_constants_of_one_sign(
    low: Problem, wide: Problem | None
) -> Iterator[tuple[Problem, Problem | None]]:
    """The op with all constants positive, and with all of them negative, where it takes floating
    tensors that do not require grad."""
    for sign in (1.0, -1.0):
        changed = False

        def signed(tensor: torch.Tensor, sign: float = sign) -> torch.Tensor:
            nonlocal changed
            if tensor.requires_grad or not tensor.is_floating_point():
                return tensor
            changed = True
            return sign * tensor.abs()

        made = _mapped(low, signed)
        if not changed:
            return
        yield made, None if wide is None else _mapped(wide, signed)


def _mapped(problem: Problem, convert: Callable[[torch.Tensor], torch.Tensor]) -> Problem:
    """The op with its tensor arguments passed through ``convert``."""
    sample = problem.sample
    args, kwargs = map_tensors((sample.args, sample.kwargs), convert)
    return problem.at(replace(sample, args=args, kwargs=kwargs))


def _overflow(
    low: Problem,
    wide: Problem | None,
    position: int,
    values: Sequence[torch.Tensor],
    large: torch.Tensor,
) -> Overflow | None:
    here = _outputs(low, values, position, large)
    if here is None or all(bool(h.isfinite().all()) for h in here.values()):
        return None
    doubled = [value.to(torch.float64) if value.is_floating_point() else value for value in values]
    there = None if wide is None else _outputs(wide, doubled, position, large.double())
    smaller = None
    if there is None:
        smaller = _outputs(low, values, position, SMALLER * large)
        if smaller is None:
            return None
    for name, found in here.items():
        reference = (there or smaller or {}).get(name)
        if reference is None or reference.shape != found.shape:
            continue
        if there is not None:
            largest = torch.finfo(large.dtype).max
            if bool((reference.abs() > largest).any()):
                continue
            limit = largest ** IN_RANGE[large.dtype]
            bad = ~found.isfinite() & (reference.abs() <= limit)
        else:
            # An infinity may be right; NaN comes from inf − inf, inf / inf or 0 · inf.
            bad = found.isnan() & reference.isfinite()
        if wide is not None and there is not None and bool(bad.any()):
            bad &= ~_not_meant(wide, doubled, position, large.double(), name, bad)
        if bool(bad.any()):
            index = bad.nonzero()[0].tolist()
            return Overflow(
                large.dtype,
                position,
                float(large.abs().max()),
                name,
                index,
                int(bad.sum()),
                float(found[tuple(index)]),
                None if there is None else float(reference[tuple(index)]),
            )
    return None


def _not_meant(
    wide: Problem,
    values: Sequence[torch.Tensor],
    position: int,
    large: torch.Tensor,
    name: str,
    suspects: torch.Tensor,
) -> torch.Tensor:
    """Which of the elements ``suspects`` of output ``name`` change far more in float64 than the
    inputs do, and otherwise than backward says. Up to three calls."""
    none = torch.zeros_like(suspects)
    generator = torch.Generator().manual_seed(0)
    point = [*values[:position], large, *values[position + 1 :]]
    moved = [_shifted(value, generator) for value in point]
    try:
        outputs = wide.forward(point), wide.forward(moved)
        before, after = ({o.name: o.value.detach() for o in found}[name] for found in outputs)
        change = after - before
        size = torch.maximum(after.abs(), before.abs())
        ill = suspects & (change.abs() > AMPLIFIED * SHIFT * size)
        if not bool(ill.any()):
            return none
        cotangents = {o.name: torch.zeros_like(o.value) for o in outputs[0] if o.differentiable}
        cotangents[name] = torch.where(ill, change.sign(), 0.0)
        gradients = wide.pull(cotangents, point)
    except (OpRaised, KeyError):
        return none
    triples = zip(gradients, moved, point, strict=True)
    claimed = sum(real_dot(dense(g), b - a) for g, b, a in triples if g is not None)
    measured = float(change[ill].abs().sum())
    return ill if abs(claimed - measured) > CLAIMED * measured else none


def _shifted(value: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """``value`` with each element moved by one rounding of float32, up or down."""
    if not value.is_floating_point():
        return value
    signs = torch.randint(0, 2, value.shape, generator=generator).to(value) * 2 - 1
    return value.detach() * (1.0 + SHIFT * signs)


def _outputs(
    problem: Problem, values: Sequence[torch.Tensor], position: int, value: torch.Tensor
) -> dict[str, torch.Tensor] | None:
    point = [*values[:position], value, *values[position + 1 :]]
    try:
        found = problem.forward(point)
    except OpRaised:
        return None
    return {item.name: widened(item.value) for item in found if item.value.is_floating_point()}
