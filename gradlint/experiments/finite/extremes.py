"""The op at extreme values of its inputs: what it returns there, made once for several rules.

Each :class:`ExtremePoint` is one forward and one backward call under the cotangents of the shared
run. What no rule will read is freed at once, and values are made again where they are needed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch

from gradlint.experiments.finite import special_values as _special
from gradlint.experiments.finite.special_values import SpecialElement
from gradlint.experiments.finite.value_ranges import FREE, HOLD_ZERO, ValueRange, range_of, within
from gradlint.experiments.finiteness import values_of
from gradlint.experiments.preconditions import why_not_run
from gradlint.experiments.subject import Subject
from gradlint.inputs.described import said_of_arguments
from gradlint.inputs.documentation import (
    Range,
    documented_ball,
    documented_nonzero,
    documented_order,
    documented_range,
    documented_sign,
    prose,
)
from gradlint.inputs.domains import CONFINED, DOMAINS, is_quantity, worded
from gradlint.inputs.seen_domains import is_in_ball
from gradlint.model.report import Where
from gradlint.model.sample import map_tensors
from gradlint.numerics.products import all_finite, rms
from gradlint.numerics.timing import least_seconds
from gradlint.targets.nodes import code_of
from gradlint.trace.op_io import Input, OpRaised
from gradlint.trace.problem import Problem

#: Extreme values by name, in the order of trying, and how a message words them: see
#: :attr:`ExtremePoint.words`.
WORDS = {
    "zeros": "where every element is zero",
    "ties": "where all elements of an input are equal",
    "single": "where single elements have special values",
    "large": "at magnitudes from {least:.0f} to {largest:.0f}",
    "tiny": "at the smallest normal numbers of the dtype",
    "identity": "at the identity",
    "coincident": "where two rows are equal",
    "masked": "where a row of a boolean argument is all False and another all True",
}

#: The kind of inputs that each is. Single special elements among others, and masks with a row that
#: is all False, are of the kind that the user gave.
KINDS: dict[str, Where] = {
    "zeros": "special",
    "ties": "special",
    "single": "sample",
    "large": "extreme",
    "tiny": "extreme",
    "identity": "special",
    "coincident": "special",
    "masked": "sample",
}

#: Extremes at which finite gradients are judged (GL402): slopes at the smallest normal numbers have
#: no correct digits.
JUDGED = ("zeros", "ties", "single", "large", "masked")

#: Calls that the extremes take at most (one more where zeros in all inputs leave the domain).
CALLS = len(WORDS) + 1

#: Share of a rule's time limit beyond which extremes are left out.
SHARE_OF_TIMEOUT = 0.1

#: Factor by which outputs may grow at other inputs: where products of many inputs grow faster,
#: gradients lose all digits to cancellation, and overflow legitimately (heuristic).
LARGEST_GROWTH = 1e13

#: Thresholds taken from the arguments and the source, at most, and their largest magnitude: larger
#: numbers are sizes and fill values. Their smallest magnitude: smaller ones keep divisors from zero
#: (heuristic: as an element, 1e-12 makes a plateau of that width, over which differences step).
MOST_BOUNDS, LARGEST_BOUND, LEAST_BOUND = 6, 100.0, 1e-6


@dataclass
class ExtremePoint:
    """The op at one set of extreme values.

    Args:
        name: a key of :data:`WORDS`.
        problem: the op on the arguments.
        make: makes the values of its inputs.
        places: the special elements, where these are single ones.
        outputs: output name → value, detached; empty where forward raised or no rule reads them.
        gradients: of every input; None likewise.
        finite: whether the differentiable outputs are finite, or infinite only where they are at
            the sample too.
    """

    name: str
    problem: Problem
    make: Callable[[], list[torch.Tensor]]
    places: list[SpecialElement] = field(default_factory=list)
    outputs: dict[str, torch.Tensor] = field(default_factory=dict)
    gradients: list[torch.Tensor | None] | None = None
    finite: bool = False

    def place_at(self, position: int, where: Sequence[int]) -> SpecialElement | None:
        """The special element at ``where`` of an input, if there is one."""
        shape = self.problem.inputs[position].value.shape
        flat = 0
        for size, index in zip(shape, where, strict=True):
            flat = flat * size + index
        here = (position, flat)
        return next((p for p in self.places if (p.position, p.element) == here), None)

    def words_at(self, position: int, where: Sequence[int]) -> str:
        """Which values the inputs have, in the words of a message on element ``where``."""
        place = self.place_at(position, where)
        return self.words if place is None else f"where it {place.words}"

    @property
    def words(self) -> str:
        """Which values the inputs have."""
        tops = [_special.largest(item.value.dtype) for item in self.problem.inputs]
        return WORDS[self.name].format(least=_special.LEAST_LARGE, largest=max(tops))


@dataclass
class ExtremePoints:
    """All extreme points, or the reason why there are none."""

    points: list[ExtremePoint] = field(default_factory=list)
    reason: str = ""

    def named(self, name: str) -> ExtremePoint | None:
        """The one called ``name``, if it was tried."""
        return next((item for item in self.points if item.name == name), None)


def make_extremes(subject: Subject) -> ExtremePoints:
    """Run the op of ``subject`` at extreme values of its inputs."""
    run, problem = subject.run, subject.problem
    if run.error is not None or run.gradients is None:
        return ExtremePoints(reason=why_not_run(subject) or "nothing ran")
    if problem.has_sparse_inputs or any(item.value.is_nested for item in problem.inputs):
        return ExtremePoints(reason="inputs are sparse or nested")
    if not problem.inputs or not any(output.differentiable for output in run.outputs):
        return ExtremePoints(reason="nothing is differentiable")
    if not all(all_finite(value) for value in problem.values()):
        return ExtremePoints(reason="an input is not finite")
    if not subject.affords(2 * CALLS):
        return ExtremePoints(
            reason=f"extremes are left out: beyond --max-calls {subject.plan.budget}"
        )
    call_s = _call_s(subject)
    if CALLS * call_s > SHARE_OF_TIMEOUT * subject.settings.timeout:
        return ExtremePoints(reason=f"a call takes {call_s:.2g} s: extremes would take too long")
    return ExtremePoints([_run_at(subject, *chosen) for chosen in _points(subject)])


def parameters_of(subject: Subject) -> range:
    """Positions of the inputs that are parameters of a module."""
    count = len(subject.problem.inputs)
    return range(count - len(subject.problem.parameters), count)


def parameters_and_numbers(subject: Subject) -> set[int]:
    """Positions of the inputs that are parameters of a module, or single numbers beside tensors of
    more elements, as a power or a scale is: one value of them is as good as never met."""
    counts = [item.value.numel() for item in subject.problem.inputs]
    numbers = {k for k, count in enumerate(counts) if count == 1 < max(counts)}
    return numbers | {*parameters_of(subject)}


def without_special(
    subject: Subject, extreme: ExtremePoint, positions: Collection[int]
) -> ExtremePoint:
    """``extreme`` with the sample's own values of the inputs ``positions``; one forward and one
    backward call."""

    def make() -> list[torch.Tensor]:
        own = enumerate(zip(extreme.make(), subject.problem.values(), strict=True))
        return [before if k in positions else special for k, (special, before) in own]

    places = [place for place in extreme.places if place.position not in positions]
    found = ExtremePoint(extreme.name, extreme.problem, make, places)
    _run(subject, found, make())
    return found


def at_values(subject: Subject, extreme: ExtremePoint, values: list[torch.Tensor]) -> ExtremePoint:
    """``extreme`` at other values of all inputs; one forward and one backward call."""
    found = ExtremePoint(extreme.name, extreme.problem, lambda: values)
    _run(subject, found, values)
    return found


def inside_of_ranges(
    subject: Subject, extreme: ExtremePoint, zeros_of: Collection[int] | None = None
) -> ExtremePoint | None:
    """``extreme`` without those single special elements that lie on the border of the values that
    their input has at the sample; None where none does. One forward and one backward call.

    Args:
        zeros_of: positions of inputs; given these, only zeros of theirs are left out.
    """
    values = subject.problem.values()
    borders = [
        place
        for place in extreme.places
        if (
            _on_border(subject, place, values)
            if zeros_of is None
            else place.position in zeros_of and _is_zero_of_one_sign(place, values)
        )
    ]
    if not borders:
        return None

    def make() -> list[torch.Tensor]:
        special = extreme.make()
        for place in borders:
            own = values[place.position].detach().reshape(-1)[place.element]
            special[place.position].view(-1)[place.element] = own
        return special

    places = [place for place in extreme.places if place not in borders]
    found = ExtremePoint(extreme.name, extreme.problem, make, places)
    _run(subject, found, make())
    return found


def _on_border(subject: Subject, place: SpecialElement, values: Sequence[torch.Tensor]) -> bool:
    """Whether all values of an input lie on one side of zero and ``place`` is zero, or all between
    zero and one and it is one: ends of a domain of which nothing else is known."""
    item, value = subject.problem.inputs[place.position], values[place.position].detach()
    if place.twin is not None or subject.sample.domains.get(item.name, "") in HOLD_ZERO:
        return False
    if place.value == 0.0:
        return _is_zero_of_one_sign(place, values)
    return place.value == 1.0 and bool(((value > 0) & (value < 1)).all())


def _is_zero_of_one_sign(place: SpecialElement, values: Sequence[torch.Tensor]) -> bool:
    """Whether ``place`` is zero by itself, and all values of its input lie on one side of it."""
    value = values[place.position].detach()
    zero = place.twin is None and place.value == 0.0
    return zero and (bool((value > 0).all()) or bool((value < 0).all()))


def _call_s(subject: Subject) -> float:
    """Seconds of a forward and a backward call, timed again where the first was slow."""
    known = subject.run_s if subject.plan.call_s is None else subject.plan.call_s
    longest = SHARE_OF_TIMEOUT * subject.settings.timeout
    try:
        return least_seconds(
            lambda: subject.problem.pull(subject.run.cotangents),
            longest / CALLS,
            known=known,
            most=longest,
        )
    except OpRaised:
        return known


def ranges_of(subject: Subject) -> list[ValueRange]:
    """The range of values of every input: of its domain, where that was inferred or documented."""
    text = prose(subject.op.defining) if subject.op.defining is not None else ""

    said = said_of_arguments(subject.op)
    names = [item.name for item in subject.problem.inputs]

    # With a matrix that makes vectors longer, an iteration does not come to an end.
    iterates = subject.coverage is not None and subject.coverage.ends_early()

    def words(item: Input) -> str:
        known = subject.sample.domains.get(item.name, "")
        if known not in FREE:
            return known
        told = said[item.name].words if item.name in said else ""
        sign = documented_sign(text, item.name, names)
        if documented_ball(text, item.name, names) and is_in_ball(item.value):
            return CONFINED["ball"]
        if ("contraction" in worded(told) or iterates) and _shortens(item.value):
            return DOMAINS["contraction"]
        return sign or _told_domain(told, item.value) or _named_domain(item) or known

    def interval(item: Input) -> Range | None:
        known = documented_range(text, item.name, names)
        real = item.value.numel() and not item.value.is_complex()
        if known is None or not real or not math.isfinite(known.high - known.low):
            return None
        ends = item.value.min().item(), item.value.max().item()
        return known if all(end in known for end in ends) else None

    return [
        replace(
            within(range_of(words(item), item.value), interval(item)),
            all_zero=not documented_nonzero(text, item.name),
        )
        for item in subject.problem.inputs
    ]


def _shortens(value: torch.Tensor) -> bool:
    """Whether square matrices make all vectors shorter."""
    if value.layout != torch.strided or value.dim() < 2 or value.shape[-1] != value.shape[-2]:
        return False
    whole = value.detach().to(torch.complex128 if value.is_complex() else torch.float64)
    return whole.numel() > 1 and bool((torch.linalg.matrix_norm(whole, ord=2) < 1.0).all())


def _named_domain(item: Input) -> str:
    """The domain of an input that is positive by its name, as a mass is, and by its values."""
    positive = not item.value.is_complex() and bool((item.value > 0).all())
    named = is_quantity(item.name.rpartition(".")[2])
    return DOMAINS["positive"] if positive and named else ""


def _told_domain(told: str, value: torch.Tensor) -> str:
    """The domain that documentation asks for by a word, where ``value`` is in it; else ""."""
    domains = worded(told)
    if value.is_complex() or not value.numel():
        return ""
    if "ordered" in domains and value.dim() and value.shape[-1] > 1:
        return DOMAINS["ordered"] if bool((value.diff(dim=-1) > 0).all()) else ""
    if "spd" in domains:
        return DOMAINS["spd"] if _is_definite(value) else ""
    if "positive" in domains and not re.search(r"(?i)non-?negative", told):
        return DOMAINS["positive"] if bool((value > 0).all()) else ""
    return ""


def _is_definite(value: torch.Tensor) -> bool:
    """Whether real matrices are symmetric, with positive eigenvalues."""
    if value.layout != torch.strided or value.dim() < 2 or value.shape[-1] != value.shape[-2]:
        return False
    whole = value.detach().to(torch.float64)
    symmetric = all_finite(whole) and torch.allclose(whole, whole.mT)
    return symmetric and bool((torch.linalg.eigvalsh(whole) > 0.0).all())


def bounds_of(subject: Subject) -> list[float]:
    """Numbers that may be thresholds of the op: its arguments and constants of its source, either
    sign, then the usual ones."""
    found = [value for _, value in subject.arguments()]
    function = subject.op.function
    sources = [getattr(function, name, None) for name in ("forward", "backward")]
    sources = sources if function is not None else [subject.op.defining]
    for source in sources:
        code = code_of(source)
        found += list(code.co_consts) if code is not None else []
    numbers = [
        float(value)
        for value in found
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    ]
    usable = [n for n in numbers if LEAST_BOUND <= abs(n) <= LARGEST_BOUND]
    floats = [n for n in usable if n not in (1.0, -1.0, 2.0, 0.5)]
    signed = [s for n in (*floats, *_special.USUAL_BOUNDS) for s in (n, -n)]
    return list(dict.fromkeys(signed))[:MOST_BOUNDS]


def _points(subject: Subject) -> Iterator[tuple[ExtremePoint, list[torch.Tensor]]]:
    """Each point with its values."""
    problem, ranges, bounds = subject.problem, ranges_of(subject), bounds_of(subject)
    order = _order_of(subject)

    def make(name: str) -> tuple[list[torch.Tensor] | None, list[SpecialElement]]:
        before = problem.values()
        places: list[SpecialElement] = []
        found: list[torch.Tensor] | None
        if name == "single":
            found, places = _special.single(before, ranges, bounds) or (None, [])
        else:
            found = getattr(_special, name)(before, ranges)
        if found is None:
            return None, []
        kept = [_special.as_symmetric(new, old) for new, old in zip(found, before, strict=True)]
        alone = [p for p in places if not _special.is_symmetric(before[p.position])]
        out_of_order = {k for pair in order if not _is_below(kept, *pair) for k in pair}
        kept = [before[k] if k in out_of_order else value for k, value in enumerate(kept)]
        return kept, [p for p in alone if p.position not in out_of_order]

    def again(name: str) -> list[torch.Tensor]:
        return make(name)[0] or []

    for name in ("zeros", "ties", "single", "large", "tiny", "identity", "coincident"):
        values, places = make(name)
        if values is not None:
            yield ExtremePoint(name, problem, partial(again, name), places), values
    masked = _with_masked_rows(subject)
    if masked is not None:
        yield ExtremePoint("masked", masked, masked.values), masked.values()


def _order_of(subject: Subject) -> list[tuple[int, int]]:
    """Positions of inputs one of which is below the other, as documented and at the sample."""
    text = prose(subject.op.defining) if subject.op.defining is not None else ""
    names = [item.name for item in subject.problem.inputs]
    pairs = [(names.index(low), names.index(high)) for low, high in documented_order(text, names)]
    values = subject.problem.values()
    return [pair for pair in pairs if _is_below(values, *pair)]


def _is_below(values: Sequence[torch.Tensor], low: int, high: int) -> bool:
    """Whether all elements of one are less than those of the other that they are broadcast to."""
    one, other = values[low].detach(), values[high].detach()
    if one.is_complex() or other.is_complex():
        return False
    try:
        return bool((one < other).all())
    except RuntimeError:
        return False  # of sizes that do not fit: they are not compared


def _run_at(subject: Subject, extreme: ExtremePoint, values: list[torch.Tensor]) -> ExtremePoint:
    _run(subject, extreme, values)
    if extreme.name == "zeros" and not extreme.finite and len(values) > 1:
        # Zeros in scales or variances leave the domain, and say nothing about the first input.
        every = extreme.make
        extreme.make = lambda: [every()[0], *subject.problem.values()[1:]]
        _run(subject, extreme, extreme.make())
    _drop_unused(extreme)
    return extreme


def _run(subject: Subject, extreme: ExtremePoint, values: list[torch.Tensor]) -> None:
    problem, cotangents = extreme.problem, subject.run.cotangents
    extreme.outputs, extreme.gradients = {}, None
    counted = problem is not subject.problem
    try:
        leaves, outputs = problem.linearize(values)
        extreme.outputs = {item.name: item.value.detach() for item in outputs}
        extreme.finite = _finite(subject, extreme.outputs)
        if extreme.name == "large" and growth(subject, extreme.outputs) > LARGEST_GROWTH:
            extreme.finite = False
        chosen = [item for item in outputs if item.name in cotangents and item.differentiable]
        if any(item.value.shape != cotangents[item.name].shape for item in chosen):
            extreme.finite = False  # the shape depends on the values
            return
        found = problem.backward(chosen, leaves, [cotangents[item.name] for item in chosen])
        extreme.gradients = [None if grad is None else grad.detach() for grad in found]
    except OpRaised:
        return
    finally:
        if counted:
            subject.problem.forward_calls += 1
            subject.problem.backward_calls += 1


def _drop_unused(extreme: ExtremePoint) -> None:
    """Keep what rules read: NaN among outputs at single elements (GL301), gradients that are not
    finite where forward is (GL302), and both where finite gradients are judged."""
    judged = extreme.finite and extreme.name in JUDGED
    if not judged and extreme.name != "single":
        extreme.outputs = {}
    gradients = extreme.gradients or []
    if not judged and (not extreme.finite or all(g is None or all_finite(g) for g in gradients)):
        extreme.gradients = None


def _finite(subject: Subject, outputs: dict[str, torch.Tensor]) -> bool:
    for item in subject.run.outputs:
        if item.name not in subject.run.cotangents:
            continue
        here = values_of(outputs[item.name]) if item.name in outputs else None
        there = values_of(item.value)
        if here is None or there is None or here.shape != there.shape:
            return False
        if not bool((here.isfinite() | ((here == there) & there.isinf())).all()):
            return False
    return True


def growth(subject: Subject, outputs: Mapping[str, torch.Tensor]) -> float:
    """How many times larger the outputs are than those at the sample, at most."""
    before = ((o.name, rms(o.value.detach())) for o in subject.run.outputs if o.differentiable)
    return max((rms(outputs[k]) / (size or 1.0) for k, size in before if k in outputs), default=1.0)


def with_one_unmasked(subject: Subject) -> ExtremePoint | None:
    """The masks that have a row of one value, with one element of the other in each such row, so
    that whatever they mean something is left; None where those of the sample are so. One forward
    and one backward call."""
    masked = _with_masked_rows(subject, left=1)
    if masked is None:
        return None
    found = ExtremePoint("masked", masked, masked.values)
    _run(subject, found, masked.values())
    return found


def _with_masked_rows(subject: Subject, left: int = 0) -> Problem | None:
    """The op with one row of each boolean argument all False, and another all True, but for
    ``left`` elements."""
    changed = False

    def mask(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal changed
        if tensor.dtype != torch.bool or tensor.dim() < 1 or tensor.layout != torch.strided:
            return tensor
        found = tensor.clone()
        rows: Any = found.reshape(-1, found.shape[-1]) if found.numel() else found
        if rows.numel() and rows.data_ptr() == found.data_ptr():
            rows[0, left:] = False
            rows[0, :left] = True
            if len(rows) > 1:
                rows[-1, left:] = True
                rows[-1, :left] = False
        changed |= not torch.equal(found, tensor)
        return found

    sample = subject.sample
    args, kwargs = map_tensors((sample.args, sample.kwargs), mask)
    if not changed:
        return None
    return subject.problem.at(replace(sample, args=args, kwargs=kwargs))
