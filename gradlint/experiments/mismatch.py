"""The evidence of a wrong derivative: measured elements, their cause, and how both read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from gradlint.diagnosis.cause import Cause
from gradlint.diagnosis.causes import diagnose, whole
from gradlint.diagnosis.evidence import (
    EXPLAINED,
    Evidence,
    at,
    largest,
    unravel,
    wrong_elements,
)
from gradlint.diagnosis.response import CONSTANT, LINEAR, NOT_LINEAR, Response, response_cause
from gradlint.experiments.other_forward import other_forward
from gradlint.experiments.precision.against_float64 import (
    evidence_of_difference,
    right_in_float64_only,
    weight_of_difference,
)
from gradlint.experiments.saved_too_early import saved_too_early
from gradlint.experiments.subject import Subject
from gradlint.numerics.bank import KEPT, Probe
from gradlint.numerics.decide import Decision
from gradlint.numerics.differences import CRITICAL
from gradlint.numerics.directional_response import Reaction, react
from gradlint.numerics.directions import direction
from gradlint.numerics.elements import Elements, Residuals, measure_elements
from gradlint.numerics.judge import Judgement
from gradlint.numerics.kinks import nudge
from gradlint.numerics.locate import Located, locate
from gradlint.numerics.map import Map
from gradlint.numerics.pair import Pair
from gradlint.numerics.products import unit_roundoff, widened
from gradlint.numerics.timing import least_seconds
from gradlint.numerics.unexplained_slopes import FEWEST_CALLS, MOST_CALLS
from gradlint.numerics.verdict import AGREES, InputJudgement
from gradlint.trace.op_io import OpRaised

#: Units of the dtype's epsilon by which rounding may keep backward from being exactly linear
#: (heuristic: 30 roundings; float32 inside float64 stays below :data:`EXPLAINED`).
ROUNDINGS = 30.0

#: Causes that say where a gradient is wrong and not by what: they confirm no size of the error.
WHERE_ONLY = (
    "one-element",
    "one-slice",
    "boundary",
    "block",
    "periodic",
    "diagonal",
    "value-range",
    "pointed-at",
    "low-precision",
)

#: Elements from which on one factor for all of them is a cause; fewer always have a common one.
FEWEST_SCALED = 3

#: Worst elements shown in a finding.
SHOWN = 3

#: A gradient of up to the first number of elements is measured in all of them; up to the second,
#: where that takes at most :data:`MOST_SECONDS`; up to the third, where also no other way has found
#: the cause.
MEASURE_ALL_QUICKLY, MEASURE_ALL, MEASURE_ALL_LAST = 16, 256, 4096

#: Elements of which a report maps the error.
MAPPED = 1024

#: Seconds that measuring all elements of a gradient may take.
MOST_SECONDS = 3.0

#: Elements of a larger tensor that are measured where a cause is known for the whole of it.
CHECKED = 5

#: Wrong and right elements measured where the wrong ones were searched for.
MEASURED_WRONG, MEASURED_RIGHT = 4, 2

#: Evidence where directions show that a gradient is wrong, but no single element can be measured.
NONE_ALONE = "no element could be measured alone: not finite or not smooth along it"

#: Random draws used as evidence: for small tensors, and for large ones, where each takes memory.
DRAWS, DRAWS_LARGE = 8, 3


@dataclass
class Mismatch:
    """Everything a finding says about one wrong gradient.

    ``weight`` holds the fields of :class:`gradlint.model.report.Grounds` that are known of it.
    """

    cause: Cause | None
    numbers: dict[str, Any]
    worst: list[int] | None
    weight: dict[str, Any]

    @property
    def relative_error(self) -> float:
        """Of the gradient, along the direction where it is largest; inf where it has no size."""
        found: float | None = self.weight["relative_error"]
        return math.inf if found is None else found


def mismatch(
    function: Map,
    decision: Decision,
    place: int,
    names: list[str],
    *,
    seed: int,
    outputs: Sequence[str] = (),
    arguments: Mapping[str, Any] | None = None,
    subject: Subject | None = None,
    held: bool = False,
) -> Mismatch:
    """Measure the elements of a gradient that differs, and name the cause.

    Args:
        function: the map that was judged.
        decision: what was decided.
        place: position in ``decision.judgement.inputs``.
        names: names of the map's inputs.
        seed: of the sample of elements in large tensors.
        outputs: what flows back into each of the map's outputs, in words.
        arguments: what the op got beside the map's inputs, by name.
        subject: the op whose forward the map is, if other forms of it may be tried.
        held: whether its documentation says that something is held constant, which is then asked
            first.
    """
    # The noise of a low dtype says nothing of the size of an error that float64 shows.
    source, position = decision.behind(place)
    item = source.judgement.inputs[position]
    right = [
        other.index
        for verdict, other in zip(decision.verdicts, decision.judgement.inputs, strict=True)
        if verdict == AGREES
    ]
    case = _Case(source.function, source, item, names, seed, right, arguments or {})
    worst = item.worst
    numbers: dict[str, Any] = {
        "directions": len(item.pairs),
        "worst_z": worst.error / worst.sigma if worst.sigma > 0.0 else float("inf"),
        "critical_z": CRITICAL,
        "relative_error": worst.relative_error,
        "resolution": item.resolution,
    }
    cause = case.diagnose(
        outputs or [grad_output_of(f"output[{k}]") for k in range(len(function.outputs))]
    )
    index = describe_elements(case.clearest, numbers)
    early: Cause | None = None
    if subject is not None:
        early = saved_too_early(subject, source.function, item.index, case.evidence)
        if early is None and held:
            early = other_forward(subject, source.function, item.index, case.evidence, held=True)
    if early is not None:
        cause = early
    elif subject is not None and (cause is None or cause.slug in WHERE_ONLY):
        explained = other_forward(subject, source.function, item.index, case.evidence)
        # Where no element is clearly off, the range in which they seem to be is chance.
        clear = cause if index is not None else None
        cause = _with_range(explained, clear) if explained is not None else cause
    weight = {
        "relative_error": max(pair.relative_error for pair in item.pairs if pair.h > 0.0)
        if any(pair.h > 0.0 for pair in item.pairs)
        else None,
        "confirmed": cause is not None
        and cause.slug not in WHERE_ONLY
        and (cause.slug != "taken-as-constant" or not worst.relative_error <= CANCELS)
        and (cause.slug != "scaled" or case.value.numel() >= FEWEST_SCALED),
        **element_weight(case.measured_evidence),
    }
    beside = right_in_float64_only(decision, item.index)
    if beside is not None:
        numbers["in float64"] = "right"
    if beside is not None and not weight["beyond_bar"]:
        # Differences of 16-bit numbers resolve no single element; the gradient in float64 does.
        weight |= weight_of_difference(beside)
        shown, index = evidence_of_difference(beside)
        numbers |= {key: shown[key] for key in ("differing", "measured_elements", "elements")}
    return Mismatch(cause, numbers, index, weight)


#: Relative error up to which a term that is taken as a constant may be one that cancels but for an
#: epsilon, such as the maximum that a log-sum-exp takes out (heuristic: with epsilons of 1e-7 such
#: errors were 1e-8 to 1e-5; that of a term that is forgotten is rarely below 1e-2).
CANCELS = 1e-4


def grad_output_of(name: str) -> str:
    """What flows back into the output called ``name``, in the words of a cause."""
    return f"the grad_output of `{name}`"


def _with_range(cause: Cause, where: Cause | None) -> Cause:
    """``cause`` with the range of values in which the gradient is wrong, if there is one."""
    if where is None or where.slug not in ("value-range", "pointed-at"):
        return cause
    only = where.text.split("; or, as well, ")[0].removeprefix(f"{where.slug}: ")
    return replace(cause, text=f"{cause.text}; {only}")


def element_weight(items: Sequence[Evidence]) -> dict[str, Any]:
    """Whether any measured element of ``items`` is off by more than its own error bar, and by how
    much of its own size the worst of those is."""
    beyond, worst = None, None
    for item in items:
        own = at(item, item.own)
        known = item.good & torch.isfinite(item.bars) & torch.isfinite(own.abs())
        if not bool(known.any()):
            continue
        error = (own - item.measured).abs()
        size = torch.maximum(own.abs(), item.measured.abs())
        floor = ROUNDINGS * unit_roundoff(item.own.dtype) * largest(item.measured)
        clear = known & (error > torch.clamp(item.bars, min=floor))
        beyond = bool(beyond) or bool(clear.any())
        if bool(clear.any()):
            worst = max(worst or 0.0, float((error[clear] / size[clear]).max()))
    return {"beyond_bar": beyond, "element_error": worst}


class _Case:
    """The search for the cause of one wrong gradient."""

    def __init__(
        self,
        function: Map,
        decision: Decision,
        item: InputJudgement,
        names: list[str],
        seed: int,
        right: Sequence[int],
        arguments: Mapping[str, Any],
    ) -> None:
        self.function, self.item, self.names, self.seed = function, item, names, seed
        self.value = function.values[item.index]
        self.right = right
        self.arguments = arguments
        self.evidence = [
            self._evidence(probe, pair) for probe, pair in _clearest_draws(function, decision, item)
        ]
        first = self.evidence[: 4 if function.elements <= KEPT else 2]
        self.measured = first
        self.residuals = Residuals(
            function,
            item.index,
            [one.cotangents for one in first],
            [one.own for one in first],
            kappa=item.kappa,
        )

    @property
    def measured_evidence(self) -> list[Evidence]:
        """The evidence for which elements were measured."""
        return [one for one in self.evidence if one.elements.numel()]

    @property
    def clearest(self) -> Evidence:
        """The evidence under the cotangent where the disagreement is clearest."""
        return self.evidence[0]

    def diagnose(self, outputs: Sequence[str]) -> Cause | None:
        """Measure as many elements as needed, and name the cause."""
        count, name = self.value.numel(), self.names[self.item.index]
        answered = response(self.function, self.evidence)
        found = Located()
        whole_measured = count <= MEASURE_ALL_QUICKLY or (
            count <= MEASURE_ALL and self._quick(count)
        )
        if whole_measured:
            self._measure(range(count))
        else:
            slopes = [one for one in self.evidence if one.usable]
            known = whole(slopes, name) if slopes else []
            if known or all(not bool(one.own.any()) for one in self.evidence):
                candidate = known[0][0].candidate(self.clearest) if known else None
                self._measure(self._worth_showing(candidate))
            else:
                calls = MOST_CALLS if answered.kind == LINEAR else FEWEST_CALLS
                found = locate(self.residuals, seed=self.seed, most_calls=calls)
                wrong = found.elements[:MEASURED_WRONG]
                others = 1 if found.complete else MEASURED_RIGHT
                right = found.right[:others] or self._sample(others)
                self._measure(sorted({*wrong, *right}))
        cause = diagnose(self.evidence, response=answered, pattern=found.pattern, right=self.right)
        if cause is None:
            cause = diagnose(
                self.evidence,
                response=answered,
                reactions=self._reactions(),
                outputs=outputs,
            )
        if (
            cause is None
            and not whole_measured
            and count <= MEASURE_ALL_LAST
            and self._quick(count)
        ):
            self._measure(range(count))
            cause = diagnose(self.evidence, response=answered)
        if cause is None and uses_earlier_inputs(self.function, self.evidence, self.seed):
            stale = Response(NOT_LINEAR, stale="inputs")
            cause = response_cause(self.evidence, stale, name)
        return cause

    def _evidence(self, probe: Probe, pair: Pair) -> Evidence:
        index = self.item.index
        nothing = torch.zeros(0, dtype=torch.float64)
        claimed = [
            self.function.projected(i, g.detach()) if g.shape == self.value.shape else nothing
            for i, g in enumerate(probe.gradients)
        ]

        def pull(cotangents: Sequence[torch.Tensor]) -> torch.Tensor:
            return self.function.gradients_at(self.function.values, cotangents)[index]

        measured = pair.h > 0.0 and pair.method == "sweep"
        return Evidence(
            index,
            self.names,
            claimed,
            nothing.to(torch.int64),
            nothing,
            nothing,
            probe.cotangents,
            move=probe.moves[index] if measured else None,
            slope=pair.measured,
            slope_bar=pair.bar if measured else math.inf,
            pull=pull,
            values=self.function.values,
            arguments=self.arguments,
        )

    def _measure(self, chosen: Sequence[int]) -> None:
        found: list[Elements] = measure_elements(self.residuals, list(chosen))
        updated = [
            replace(one, elements=each.indices, measured=each.measured, bars=each.bars)
            for one, each in zip(self.measured, found, strict=True)
        ]
        self.evidence = updated + self.evidence[len(updated) :]

    def _sample(self, size: int) -> list[int]:
        generator = torch.Generator().manual_seed(self.seed)
        count = self.value.numel()
        return torch.randint(0, count, (size,), generator=generator).tolist()

    def _worth_showing(self, candidate: torch.Tensor | None) -> list[int]:
        """The elements that a known cause says are worst, and a sample of the others."""
        sample = self._sample(CHECKED)
        if candidate is None:
            return sorted(set(sample))
        error = (widened(candidate) - widened(self.clearest.own)).abs().reshape(-1)
        return sorted({*error.topk(SHOWN).indices.tolist(), *sample})

    def _reactions(self) -> list[Reaction]:
        """J·u along two fresh directions."""
        generator = torch.Generator().manual_seed(self.seed + 11)
        found = []
        for kind in ("signs", "random"):
            u = direction(kind, self.value, self.clearest.own, generator)
            reaction = react(self.residuals, self.function.projected(self.item.index, u))
            if reaction is not None:
                found.append(reaction)
        return found

    def _quick(self, count: int) -> bool:
        enough = MOST_SECONDS / (6 * count)
        call_s = least_seconds(
            lambda: self.function.evaluate(self.function.values), enough, most=MOST_SECONDS
        )
        return call_s <= enough


def _clearest_draws(
    function: Map, decision: Decision, item: InputJudgement
) -> list[tuple[Probe, Pair]]:
    """Draws behind the first and the confirming judgement, the clearest of the first in front."""
    first = list(enumerate(item.pairs))
    first.sort(key=lambda each: -each[1].clarity)
    sources: list[tuple[Judgement, int, Pair]] = [
        (decision.judgement, k, pair) for k, pair in first
    ]
    confirming = decision.confirmed.get(item.index)
    if confirming is not None:
        again = next((one for one in confirming.inputs if one.index == item.index), None)
        for k, pair in enumerate(again.pairs if again else ()):
            sources.append((confirming, k, pair))
    small = function.elements <= KEPT
    if not small:
        late = [source for source in sources if source[0] is not decision.judgement]
        sources = [*sources[:2], *late][:DRAWS_LARGE]
    return [(judgement.probe(k), pair) for judgement, k, pair in sources[:DRAWS]]


def describe_elements(evidence: Evidence, numbers: dict[str, Any]) -> list[int] | None:
    """Put the worst elements and the counts into ``numbers``; returns the worst index, or None
    where no element was seen to be wrong by itself."""
    shape = tuple(evidence.own.shape)
    wrong = wrong_elements(evidence)
    measured = int(evidence.good.sum())
    numbers["numel"] = int(evidence.own.numel())
    if not measured:
        numbers["measured"] = NONE_ALONE
        return None
    numbers["differing"] = int(wrong.sum())
    numbers["measured_elements"] = measured
    own = evidence.own.reshape(-1)[evidence.elements.to(evidence.own.device)].cpu()
    error = (own - evidence.measured).abs()
    error = torch.where(wrong & torch.isfinite(error), error, torch.zeros_like(error))
    numbers["error_map"] = _error_map(evidence, error)
    order = torch.argsort(error, descending=True)[:SHOWN].tolist()
    numbers["elements"] = [
        {
            "index": list(unravel(int(evidence.elements[k]), shape)),
            "returned": plain_number(own[k]),
            "measured": plain_number(evidence.measured[k]),
            "error": float(error[k]),
        }
        for k in order
        if float(error[k]) > 0.0
    ]
    if not numbers["elements"]:
        return None
    return list(unravel(int(evidence.elements[order[0]]), shape))


def _error_map(evidence: Evidence, error: torch.Tensor) -> dict[str, list[Any]]:
    """The error of the first elements that were measured, 0 within the error bar, by their flat
    positions in a tensor of this shape."""
    kept = torch.nonzero(evidence.good).reshape(-1)[:MAPPED]
    return {
        "shape": list(evidence.own.shape),
        "positions": evidence.elements[kept].tolist(),
        "errors": [float(f"{value:.3g}") for value in error[kept].tolist()],
    }


def plain_number(value: torch.Tensor) -> float | str:
    """A scalar tensor as a float, or as text where it is complex."""
    found = value.item()
    return f"{found:.6g}" if isinstance(found, complex) else float(found)


def response(function: Map, evidence: Sequence[Evidence]) -> Response:
    """How backward responds: linearly, as every vector-Jacobian product, where
    g(v − 3w) = g(v) − 3·g(w) to within rounding; constantly where g(v − 3w) is g(v) and g(w); else
    not linearly, perhaps because of a constant term or of something kept from an earlier call.
    (Three times: where v and w have a sign in common, v − 3w has the other.)"""
    if len(evidence) < 2:
        return Response()
    try:
        return _ask_backward(function, evidence)
    except OpRaised:
        return Response()


def _ask_backward(function: Map, evidence: Sequence[Evidence]) -> Response:
    index = evidence[0].index

    def pull(cotangents: Sequence[torch.Tensor]) -> torch.Tensor:
        found = function.gradients_at(function.values, cotangents)
        return widened(function.projected(index, found[index]))

    first, second = evidence[0].cotangents, evidence[1].cotangents
    g, h = widened(evidence[0].own), widened(evidence[1].own)
    if not g.numel():
        return Response()
    mixed = [v - 3 * w for v, w in zip(first, second, strict=True)]
    got = pull(mixed)
    lowest = min(
        (y.dtype for y in [evidence[0].own, *mixed]), key=lambda dtype: -unit_roundoff(dtype)
    )
    share = max(EXPLAINED, ROUNDINGS * unit_roundoff(lowest))
    true = max((largest(item.measured) for item in evidence), default=0.0)
    allowed = share * max(float((g.abs() + 3.0 * h.abs()).max()), true)

    def same(a: torch.Tensor, b: torch.Tensor) -> bool:
        return a.shape == b.shape and bool(((a - b).abs() <= allowed).all())

    if same(got, g - 3.0 * h):
        return Response()
    again = pull(mixed)
    if not same(again, got):
        # The result depends on earlier calls. Is it the gradient of the call just before?
        pull(first)
        settled = pull(first)
        late = pull(second)
        stale = same(late, settled) and not same(late, pull(second))
        return Response(NOT_LINEAR, stale="grad_output" if stale else "")
    if same(got, g) and same(h, g):
        return Response(CONSTANT)
    offset = pull([torch.zeros_like(v) for v in first])
    if bool((offset.abs() > allowed).any()) and same(got - offset, g - offset - 3.0 * (h - offset)):
        return Response(NOT_LINEAR, offset=offset)
    return Response(NOT_LINEAR)


def uses_earlier_inputs(function: Map, evidence: Sequence[Evidence], seed: int) -> bool:
    """Whether backward, called at another point and then here, returns the other point's one."""
    moved = nudge(function, seed)
    if moved is None or not evidence:
        return False
    index, vs = evidence[0].index, evidence[0].cotangents
    try:
        moved.gradients_at(moved.values, vs)
        there = widened(moved.gradients_at(moved.values, vs)[index])
        first = widened(function.gradients_at(function.values, vs)[index])
        again = widened(function.gradients_at(function.values, vs)[index])
    except OpRaised:
        return False
    if there.shape != first.shape:
        return False
    allowed = EXPLAINED * float(there.abs().max()) if there.numel() else 0.0
    near = bool(((first - there).abs() <= allowed).all())
    return near and bool(((again - there).abs() > allowed).any())
