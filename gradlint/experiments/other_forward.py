"""The forward whose derivative backward returns, where that is not the forward of the op.

A backward that leaves out a term, takes a value as a constant, assumes an argument's default or has
another constant than forward returns the exact derivative of another function: of forward with one
call, one number or one argument changed. Such functions are tried one after the other. One is named
as the cause if its measured derivative is what backward returned, in every direction and every
element that was measured, so that it explains the whole error.

Let T and A be the slopes of forward and of forward with some value held where it is at the sample,
and c the slope that backward claims. A backward in which that value counts s times as much claims

    c = A + s·(T − A)

under every cotangent and along every direction: one measurement of A yields s.
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any

import torch

from gradlint.base.clock import had_seconds
from gradlint.diagnosis.cause import Cause
from gradlint.diagnosis.evidence import EXPLAINED, LEFT, Evidence, Fit, at, meets
from gradlint.experiments.subject import Subject
from gradlint.inputs.designed_arguments import other_arguments, with_arguments
from gradlint.model.op import Op
from gradlint.model.sample import Sample
from gradlint.numerics.directions import direction
from gradlint.numerics.elements import Residuals, measure_elements
from gradlint.numerics.map import Map
from gradlint.numerics.products import norm, widened
from gradlint.ops.patience import Patience
from gradlint.trace.altered_calls import (
    LAST,
    NUMBER,
    OPERAND,
    RESULT,
    THROUGH,
    Alteration,
    Altered,
    Comparing,
    Recorded,
    Recording,
    Site,
    writes,
)
from gradlint.trace.graph import python_nodes
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem

Values = Sequence[torch.Tensor]
Evaluate = Callable[[Values], Sequence[torch.Tensor] | None]

#: Step of a difference: its truncation error and its rounding error are about 1e-10 in float64.
STEP = 2.0**-17

#: Directions that an explanation must hold along before single elements are measured.
DIRECTIONS = 3

#: Seconds of processor time that the search may take (a busy machine changes no cause), and the
#: functions that it tries, at most (heuristic: an op of twenty calls has about sixty).
MOST_SECONDS, MOST_TRIED = 2.0, 200

#: Share of ``--timeout`` that it may take by the clock, and calls that it takes at least
#: (heuristic: what is found soon is found within these).
SHARE_OF_TIMEOUT, FEWEST_CALLS = 0.1, 40

#: How many times as much a value may count in backward: not at all, with the other sign, half and
#: twice. Of other factors one that fits by chance could always be found.
FACTORS = (0.0, -1.0, 0.5, 2.0)

#: Names of functions whose derivative is 1 or -1.
_SUMS = frozenset({"add", "sub", "radd", "rsub", "iadd", "isub", "neg", "clone"})

#: Values at which factors, exponents and shifts make no difference, so that a backward may assume
#: them.
PLAIN = (0.0, 1.0, 2.0, -1.0, 0.5)

#: Slug of the cause that backward takes a value as a constant.
HELD = "taken-as-constant"

#: Slug of the cause that backward takes an argument for its default, or for none.
LEFT_OUT = "argument-left-out"

#: Numbers tried in place of one, at most.
MOST_NUMBERS = 8


@dataclass(frozen=True)
class Other:
    """Another forward.

    Args:
        evaluate: returns its outputs.
        cause: the cause if backward returns its derivative.
    """

    evaluate: Evaluate
    cause: Cause


def other_forward(
    subject: Subject,
    function: Map,
    position: int,
    evidence: Sequence[Evidence],
    *,
    held: bool = False,
) -> Cause | None:
    """The cause that what backward returns for input ``position`` is the derivative of another
    forward; None if none was found.

    Args:
        subject: the op where its gradient is wrong.
        function: its map.
        evidence: of the wrong gradient.
        held: whether only forwards count in which some value is held constant.
    """
    value = function.values[position]
    if value.dtype not in (torch.float64, torch.complex128) or not evidence:
        return None
    allowed_s = SHARE_OF_TIMEOUT * subject.settings.timeout
    if FEWEST_CALLS * subject.problem.quickest_s > allowed_s or not subject.affords(FEWEST_CALLS):
        return None
    problem, patience = subject.problem, subject.problem.patience
    problem.patience = Patience(MOST_SECONDS)  # a loop may not end with another number
    try:
        return _Search(subject, function, position, evidence).run(HELD if held else None)
    except (OpRaised, RuntimeError):  # forward does not run again, or not under a mode
        return None
    finally:
        problem.patience = patience


class _Search:
    def __init__(
        self, subject: Subject, function: Map, position: int, evidence: Sequence[Evidence]
    ) -> None:
        self.subject, self.problem = subject, subject.problem
        self.function, self.position, self.evidence = function, position, evidence
        self.own = [item.own for item in evidence]
        generator = torch.Generator().manual_seed(subject.seed + 23)
        value = function.values[position]
        self.directions = [
            function.projected(position, direction(kind, value, self.own[0], generator))
            for kind in ("signs", "random", "signs")[:DIRECTIONS]
        ]
        self.until = time.process_time() + MOST_SECONDS
        self.latest = had_seconds() + SHARE_OF_TIMEOUT * subject.settings.timeout
        self.tried = 0
        self.true = [self._slopes(function.evaluate, u) for u in self.directions]

    def run(self, slug: str | None) -> Cause | None:
        """The first that explains everything, of those whose cause is ``slug`` if it is given."""
        if any(slopes is None for slopes in self.true):
            return None
        calls = self._record()
        for found in (self._arguments(), self._calls(calls), self._numbers(calls)):
            for other in (one for one in found if slug in (None, one.cause.slug)):
                self.tried += 1
                late = time.process_time() > self.until or had_seconds() > self.latest
                if late or self.tried > MOST_TRIED:
                    return None
                fit = self._fit(other.evaluate)
                if fit is not None:
                    return replace(other.cause, text=f"{other.cause.text}{fit}", misfit=fit.misfit)
        return None

    # Measurements.

    def _slopes(self, evaluate: Evaluate, u: torch.Tensor) -> list[tuple[float, float]] | None:
        """(measured, claimed) slope along ``u`` under the cotangents of each evidence."""
        taken = self._residuals(evaluate).change(u, STEP)
        if taken is None:
            return None
        found = []
        for item, own in zip(self.evidence, self.own, strict=True):
            step = taken.step(item.cotangents, own, 0.0)
            if step is None:
                return None
            found.append((step.slope, step.slope - step.residual))
        return found

    def _residuals(self, evaluate: Evaluate) -> Residuals:
        return Residuals(
            replace(self.function, evaluate=evaluate),
            self.position,
            [item.cotangents for item in self.evidence],
            self.own,
        )

    def _fit(self, evaluate: Evaluate) -> Fit | None:
        """How well what backward returned is the derivative of ``evaluate``; None if it is not."""
        for u, true in zip(self.directions, self.true, strict=True):
            slopes = self._slopes(evaluate, u)
            if slopes is None or true is None or not _explains(slopes, true):
                return None
        return self._confirmed(evaluate)

    def _confirmed(self, evaluate: Evaluate) -> Fit | None:
        """The fit to all elements that were measured."""
        measured = [item for item in self.evidence if item.elements.numel()]
        if not measured:
            return Fit(EXPLAINED, len(self.evidence) * len(self.directions))
        residuals = Residuals(
            replace(self.function, evaluate=evaluate),
            self.position,
            [item.cotangents for item in measured],
            [item.own for item in measured],
        )
        total = Fit(0.0, 0)
        chosen = measured[0].elements.tolist()
        for item, found in zip(measured, measure_elements(residuals, chosen), strict=True):
            moved = replace(
                item, measured=found.measured, bars=found.bars, move=None, slope_bar=math.inf
            )
            fit = meets(moved, item.own)
            if fit is None:
                return None
            good = moved.good & item.good
            before = norm(at(item, item.own)[good] - item.measured[good]) ** 2
            total += replace(fit, before=before)
        return total if total.count and total.removes_the_error else None

    # Other arguments.

    def _arguments(self) -> Iterator[Other]:
        for words, name, sample in other_samples(self.subject.op, self.subject.sample):
            there = self.problem.at(sample)
            values = self.problem.values()
            if [v.shape for v in there.values()] != [v.shape for v in values]:
                continue
            yield Other(self._at(there), _left_out(name, words))
        for k, item in enumerate(self.problem.inputs):
            if k != self.position:
                for slug, words, change in _changes(item.value):
                    cause = _mistaken(slug, item.name, words.format(f"`{item.name}`"))
                    yield Other(self._with_value(k, change), cause)
        module = self.subject.op.module
        for name, value in list(vars(module).items()) if module is not None else ():
            if not name.startswith("_") and type(value) in (int, float, bool):
                for number in _instead_of(value):
                    words = f"`{name}` were {number:g}"
                    yield Other(self._with_attribute(name, number), _left_out(name, words))

    def _at(self, there: Problem) -> Evaluate:
        known = [tuple(y.shape) for y in self.function.outputs]

        def evaluate(values: Values) -> list[torch.Tensor] | None:
            self.problem.forward_calls += 1
            try:
                found = [item.value for item in there.forward(values)]
            except OpRaised:
                return None
            chosen = [y for y in found if y.is_floating_point() or y.is_complex()]
            return chosen if [tuple(y.shape) for y in chosen] == known else None

        return evaluate

    def _with_value(self, k: int, change: Callable[[torch.Tensor], torch.Tensor]) -> Evaluate:
        def evaluate(values: Values) -> Sequence[torch.Tensor] | None:
            changed = list(values)
            changed[k] = change(values[k])
            return self.function.evaluate(changed)

        return evaluate

    def _with_attribute(self, name: str, value: float) -> Evaluate:
        module = self.subject.op.module

        @contextmanager
        def changed() -> Iterator[None]:
            before = getattr(module, name)
            setattr(module, name, value)
            try:
                yield
            finally:
                setattr(module, name, before)

        return self._within(changed)

    def _within(self, surroundings: Callable[[], Any]) -> Evaluate:
        """The op's own forward, run within another context."""

        def evaluate(values: Values) -> Sequence[torch.Tensor] | None:
            before = self.problem.surroundings
            self.problem.surroundings = surroundings
            try:
                return self.function.evaluate(values)
            finally:
                self.problem.surroundings = before

        return evaluate

    # Other calls and numbers.

    def _record(self) -> list[Recorded]:
        """The calls of forward, with what moves along the first direction marked."""
        recording = Recording()
        if self._within(lambda: recording)(self.function.values) is None:
            return []
        values = list(self.function.values)
        moved = widened(values[self.position]) + STEP * self.directions[0]
        values[self.position] = moved.to(values[self.position].dtype)
        comparing = Comparing(recording.calls)
        self._within(lambda: comparing)(values)
        return [] if comparing.lost else recording.calls

    def _altered(self, calls: Sequence[Recorded], alteration: Alteration) -> Evaluate:
        return self._within(lambda: Altered(calls, alteration))

    def _calls(self, calls: Sequence[Recorded]) -> Iterator[Other]:
        """Forwards in which a value counts otherwise: the latest calls first, since a value that
        several calls lead to is named by the last of them."""
        groups = _same_expressions(calls)
        readers = _readers(calls)
        for sites, runs in groups:
            site, moving = runs[0].site, set().union(*(call.moving for call in runs))
            if -1 not in moving or writes(site.name):
                continue
            yield from self._counted(calls, runs, Alteration(sites, RESULT))
            for k in sorted(moving - {-1}) if site.name.strip("_") not in _SUMS else ():
                if all(_passes(call, k) for call in runs):
                    cause = _derivative_left_out(runs[0], k)
                    yield Other(self._altered(calls, Alteration(sites, THROUGH, k, 1.0)), cause)
        yield from self._picked_twice(calls, groups)
        for sites, runs in groups:
            for k in sorted(set().union(*(call.moving for call in runs)) - {-1}):
                shared = any(readers[call.reads[k]] > 1 for call in runs if k in call.reads)
                if shared and not (writes(runs[0].site.name) and k == 0):
                    # In another run of the same expression this operand may be a number.
                    moved = next(call for call in runs if k in call.moving)
                    value = _quoted_operand(moved, k)
                    yield from self._counted(calls, runs, Alteration(sites, OPERAND, k), value)

    def _picked_twice(
        self, calls: Sequence[Recorded], groups: Sequence[tuple[frozenset[Site], list[Recorded]]]
    ) -> Iterator[Other]:
        """Forwards in which an element that is picked repeatedly moves in the last place only: in
        one expression, and in all."""
        picking = [(sites, runs[0]) for sites, runs in groups if runs[0].last is not None]
        for sites, run in picking:
            yield Other(self._altered(calls, Alteration(sites, LAST)), _assigned(run.site))
        if len(picking) > 1:
            every = frozenset().union(*(sites for sites, _ in picking))
            yield Other(
                self._altered(calls, Alteration(every, LAST)), _assigned(picking[-1][1].site)
            )

    def _counted(
        self,
        calls: Sequence[Recorded],
        runs: Sequence[Recorded],
        alteration: Alteration,
        value: str = "",
    ) -> Iterator[Other]:
        """Forward in which a value moves as many times as far as explains the first slopes, if that
        is one of :data:`FACTORS`, or what makes a sum of a mean, or a mean of a sum."""
        self.tried += 1
        held = self._slopes(self._altered(calls, alteration), self.directions[0])
        true = self.true[0]
        if held is None or true is None:
            return
        exchanged = _exchanged_reduction(runs) if alteration.part == RESULT else None
        factor = _factor(held, true, () if exchanged is None else (exchanged,))
        if factor is None:
            return
        changed = replace(alteration, factor=factor)
        cause = _counts(value or _quoted(runs[0].site), factor)
        if factor == exchanged and factor not in FACTORS:
            cause = _reduced_otherwise(runs[0].site, factor)
        yield Other(self._altered(calls, changed), cause)

    def _numbers(self, calls: Sequence[Recorded]) -> Iterator[Other]:
        """Forwards with another number in one place."""
        known = numbers_in_backward(self.problem)
        seen: set[tuple[Site, int]] = set()
        for call in calls:
            for k, number in call.numbers.items():
                if (call.site, k) in seen or not call.moving:
                    continue
                seen.add((call.site, k))
                near = [number - 1.0, number + 1.0] if number.is_integer() and number > 2 else []
                wanted = [n for n in dict.fromkeys([*near, *known, 0.0, 1.0]) if n != number]
                for other in wanted[:MOST_NUMBERS]:
                    changed = Alteration(frozenset({call.site}), NUMBER, k, other)
                    cause = _other_number(call.site, number, other)
                    yield Other(self._altered(calls, changed), cause)


def _same_expressions(
    calls: Sequence[Recorded],
) -> list[tuple[frozenset[Site], list[Recorded]]]:
    """The calls by what is written in the source, the latest first."""
    groups: dict[Any, list[Recorded]] = {}
    texts = {call.site: call.site.text for call in calls}
    for call in reversed(calls):
        site = call.site
        key = (site.code, site.name, texts[site] or site.instruction)
        groups.setdefault(key, []).insert(0, call)
    return [(frozenset(run.site for run in runs), runs) for runs in groups.values()]


def _readers(calls: Sequence[Recorded]) -> dict[int, int]:
    """Identity of an operand → how many calls read it."""
    found: dict[int, int] = {}
    for call in calls:
        for identity in set(call.reads.values()):
            found[identity] = found.get(identity, 0) + 1
    return found


def _passes(call: Recorded, k: int) -> bool:
    """Whether the result of ``call`` could move as its operand ``k`` does."""
    if call.result is None or k not in call.operands:
        return False
    shape = call.result.shape
    try:
        return torch.broadcast_shapes(call.operands[k].shape, shape) == shape
    except RuntimeError:
        return False


def _explains(slopes: Sequence[tuple[float, float]], true: Sequence[tuple[float, float]]) -> bool:
    """Whether claimed slopes agree with measured ones, and explain what the true ones do not."""
    before = after = 0.0
    for (measured, claimed), (exact, _) in zip(slopes, true, strict=True):
        if not abs(measured - claimed) <= EXPLAINED * max(abs(measured), abs(claimed), abs(exact)):
            return False
        before += (exact - claimed) ** 2
        after += (measured - claimed) ** 2
    return after <= LEFT**2 * before


def _exchanged_reduction(runs: Sequence[Recorded]) -> float | None:
    """How many times as much the sum is in place of a mean, or the mean in place of a sum; None
    where ``runs`` are neither, or of different sizes."""
    name = runs[0].site.name.strip("_")
    counts = {
        call.operands[0].numel() / call.result.numel()
        for call in runs
        if 0 in call.operands and call.result is not None and call.result.numel()
    }
    if name not in ("mean", "sum") or len(counts) != 1:
        return None
    (count,) = counts
    return None if count <= 1 else count if name == "mean" else 1.0 / count


def _factor(
    held: Sequence[tuple[float, float]],
    true: Sequence[tuple[float, float]],
    others: Sequence[float] = (),
) -> float | None:
    """The s of :data:`FACTORS`, or of ``others``, with c = A + s·(T − A) for all slopes; None if
    there is none."""
    share = [exact - still for (exact, _), (still, _) in zip(true, held, strict=True)]
    rest = [claimed - still for (still, claimed) in held]
    size = sum(b * b for b in share)
    if size <= EXPLAINED**2 * sum(exact * exact for exact, _ in true):
        return None
    found = sum(b * r for b, r in zip(share, rest, strict=True)) / size
    fitting = (s for s in (*FACTORS, *others) if abs(s - found) <= EXPLAINED * 10.0)
    return next(fitting, None)


# Arguments.


def other_samples(op: Op, sample: Sample) -> Iterator[tuple[str, str, Sample]]:
    """``sample`` with one argument changed, defaults written out: words for the value, which
    complete "as if", the argument's name, and the sample."""
    if op.signature is None:
        return
    given = dict(zip(op.signature.parameters, sample.args, strict=False)) | sample.kwargs
    for name, parameter in op.signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            return
        now = given.get(name, parameter.default)
        for value, words in _others(name, now, parameter.default):
            yield words, name, with_arguments(op, sample, {name: value})
    for designed in other_arguments(op, sample, 0):
        for name, value in designed.moved.items() if len(designed.moved) == 1 else ():
            if isinstance(value, str):
                yield f"`{name}` were {value!r}", name, designed.sample


def _others(name: str, now: Any, default: Any) -> Iterator[tuple[Any, str]]:
    if isinstance(now, torch.Tensor):
        if default is None:
            yield None, f"`{name}` were None"
        if not now.requires_grad and (now.is_floating_point() or now.dtype == torch.bool):
            boolean = now.dtype == torch.bool
            for number in (1, 0):
                shown = str(bool(number)) if boolean else f"{number}"
                yield torch.full_like(now, number), f"every element of `{name}` were {shown}"
        return
    if type(now) in (int, float, bool):
        usual = [default] if type(default) is type(now) else []
        for number in dict.fromkeys([*usual, *_instead_of(now)]):
            if number != now:
                yield number, f"`{name}` were {number}"


def _changes(
    value: torch.Tensor,
) -> Iterator[tuple[str, str, Callable[[torch.Tensor], torch.Tensor]]]:
    """What a backward may take another input for: slug of the cause, words, and the change."""
    yield LEFT_OUT, "every element of {} were 1", torch.ones_like
    yield LEFT_OUT, "every element of {} were 0", torch.zeros_like
    if value.dim() >= 2 and value.shape[-1] == value.shape[-2] > 1:
        yield "transposed", "{} were transposed", lambda tensor: tensor.mT.contiguous()
    yield "sign", "{} had the opposite sign", torch.neg
    if value.is_complex():
        yield "conjugate", "{} were conjugated", lambda tensor: tensor.conj().resolve_conj()


def _instead_of(now: float) -> list[Any]:
    """Other values of a flag or a number."""
    if isinstance(now, bool):
        return [not now]
    if isinstance(now, int):
        found = [-1, 0, 1, 2, now - 1, now + 1]
        return [n for n in dict.fromkeys(found) if n != now]
    return [n for n in dict.fromkeys([*PLAIN, -now]) if n != now]


def numbers_in_backward(problem: Problem) -> list[float]:
    """The numbers written in the backward functions of the op, and in what they call by name."""
    _, outputs = problem.linearize()
    classes = [node._forward_cls for node in python_nodes([item.value for item in outputs])]
    found: dict[float, None] = {}
    for each in dict.fromkeys(classes):
        backward = inspect.unwrap(getattr(each, "backward", None) or each.vjp)
        code = getattr(backward, "__code__", None)
        if code is not None:
            found |= dict.fromkeys(_constants(code, getattr(backward, "__globals__", {})))
    return [number for number in found if math.isfinite(number)]


def _constants(code: CodeType, known: Mapping[str, Any]) -> Iterator[float]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _constants(constant, known)
        elif isinstance(constant, tuple):
            yield from (float(one) for one in constant if type(one) in (int, float))
        elif type(constant) in (int, float):
            yield float(constant)
    for name in code.co_names:
        if type(known.get(name)) in (int, float):
            yield float(known[name])


# Words.


def _left_out(name: str, words: str) -> Cause:
    return _mistaken(LEFT_OUT, name, words)


def _mistaken(slug: str, name: str, words: str) -> Cause:
    """The cause that backward takes an argument for something else."""
    helps = {
        LEFT_OUT: f"use `{name}` in backward wherever forward does: keep it on ctx, and derive the "
        "formula for every value of it",
        "transposed": f"use `{name}` transposed where backward multiplies with it, or not "
        "transposed where it is now",
        "sign": f"change the sign of `{name}` where backward uses it",
        "conjugate": f"conjugate `{name}` where backward uses it, or leave out the conjugate",
    }
    return Cause(
        slug,
        f"{slug.replace('-', ' ')}: backward computes as if {words}: that is the derivative of "
        "forward then, and agrees",
        helps[slug],
    )


def _quoted(site: Site) -> str:
    return f"`{site.text}` (line {site.line})" if site.text else f"line {site.line} of forward"


def _quoted_operand(call: Recorded, position: int) -> str:
    """The operand of a call, in words."""
    name = call.operand(position)
    if name:
        return f"`{name}` in {_quoted(call.site)}"
    which = "the tensor" if len(call.operands) == 1 else f"operand {position + 1}"
    return f"{which} in {_quoted(call.site)}"


def _counts(value: str, factor: float) -> Cause:
    if factor == 0.0:
        return Cause(
            HELD,
            f"taken as constant: backward treats {value} as a constant: with that value held, the "
            "derivative of forward agrees",
            f"add to backward what the gradient gets through {value}",
        )
    if factor == -1.0:
        return Cause(
            "sign",
            f"sign: what the gradient gets through {value} has the wrong sign in backward: with "
            "the other one the derivative of forward agrees",
            f"change the sign of what comes through {value} in backward",
        )
    times = "twice" if factor == 2.0 else f"{factor:g} times"
    return Cause(
        "scaled",
        f"scaled: what the gradient gets through {value} counts {times} in backward: so counted, "
        "the derivative of forward agrees",
        f"multiply what comes through {value} in backward by {1.0 / factor:g}",
    )


def _reduced_otherwise(site: Site, factor: float) -> Cause:
    taken, meant = ("sum", "mean") if factor > 1.0 else ("mean", "sum")
    return Cause(
        "scaled",
        f"scaled: backward takes a {taken} for the {meant} in what the gradient gets through "
        f"{_quoted(site)}: counted {factor:g} times, the derivative of forward agrees",
        f"take the {meant} in place of the {taken} in the term of backward that comes through "
        f"{_quoted(site)}",
    )


def _assigned(site: Site) -> Cause:
    return Cause(
        "repeated-index",
        f"repeated-index: of what {_quoted(site)} picks more than once backward keeps the last "
        "alone: with the others held, the derivative of forward agrees",
        "add up what arrives in one place: index_add_, scatter_add_ or "
        "index_put_(…, accumulate=True) in place of an assignment",
    )


def _derivative_left_out(call: Recorded, position: int) -> Cause:
    site, name = call.site, call.operand(position)
    of = f" with respect to `{name}`" if name and name != site.text else ""
    return Cause(
        "derivative-left-out",
        f"derivative left out: backward takes the derivative of {_quoted(site)}{of} as 1: with "
        "that, the derivative of forward agrees",
        f"multiply by the derivative of {_quoted(site)}{of} in backward",
    )


def _other_number(site: Site, number: float, other: float) -> Cause:
    return Cause(
        "wrong-constant",
        f"wrong constant: backward computes as if {_quoted(site)} had {other:g} in place of "
        f"{number:g}: the derivative of forward then agrees",
        f"use {number:g} in backward, as {_quoted(site)} does, or change both",
    )
