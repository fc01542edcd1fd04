"""Gradients in low precision compared with those in float64, and the causes of differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from gradlint.diagnosis.cause import Cause
from gradlint.diagnosis.causes import diagnose
from gradlint.diagnosis.evidence import BARS, Evidence, unravel
from gradlint.diagnosis.precision import low_precision
from gradlint.experiments.judged_dtype import rounded_to_float32
from gradlint.experiments.subject import Subject
from gradlint.numerics.decide import Decision, decide
from gradlint.numerics.directions import cotangent
from gradlint.numerics.products import norm, unit_roundoff
from gradlint.numerics.twin import TwinJudgement, compare
from gradlint.numerics.verdict import AGREES, DIFFERS, ROUNDED
from gradlint.trace.op_io import Input

#: Dtypes that a computation may have been cast to.
COARSER = (torch.bfloat16, torch.float16)

#: ‖g − g₆₄‖ / ‖g₆₄‖ of a gradient that was rounded once to a dtype, in units of its ε: 0.2 for
#: uniform errors of up to ε/2 of elements that fill their binades. Several roundings, and sums that
#: cancel, leave it within this factor (heuristic: the two dtypes are a factor 8 apart).
ROUNDED_ONCE, WITHIN = 0.2, 8.0

#: Share of the errors on either side of zero, and of errors that are of the typical size, at least
#: (heuristic: rounding has no sign and spares few elements).
EITHER_SIGN, SPREAD = 0.15, 0.5


def low_precision_inputs(subject: Subject) -> list[int]:
    """Positions of the judged inputs that are not in float64."""
    wide = (torch.float64, torch.complex128)
    values = subject.problem.values()
    return [index for index in subject.judged if values[index].dtype not in wide]


def gradients_in_float32(subject: Subject) -> list[Input]:
    """The inputs whose gradient, for cotangents in float64, holds only values that float32 can
    represent; without those that GL401 has found wrong."""
    function = subject.first_order_map
    generator = torch.Generator().manual_seed(subject.seed)
    vs = [cotangent(y, generator) for y in function.outputs]
    if any(rounded_to_float32(v) for v in vs):
        return []
    gradients = function.gradients_at(function.values, vs)
    wrong = subject.wrong_inputs
    return [
        subject.problem.inputs[index]
        for index in subject.judged
        if index not in wrong and rounded_to_float32(gradients[index])
    ]


def compare_with_float64(subject: Subject, low: Sequence[int]) -> tuple[list[TwinJudgement], str]:
    """The comparison of the inputs ``low``, without those that GL401 has found wrong already; or
    a reason why they can't be compared."""
    decision = subject.first_order
    wrong = subject.wrong_inputs
    left = [index for index in low if index not in wrong]
    if not left:
        return [], "see GL401"
    known = decision.compared
    twin_decision = decision.twin
    if any(index not in known for index in left):
        function = subject.first_order_map
        twin = function.twin() if function.twin is not None else None
        if twin is None:
            return [], "no float64 to compare with: the op does not accept it; see GL401"
        known = {
            found.index: found for found in compare(function, twin, seed=subject.seed, inputs=left)
        }
        suspects = [index for index in left if known[index].verdict == DIFFERS]
        twin_decision = decide(twin, seed=subject.seed, inputs=suspects) if suspects else None
    right = {
        item.index
        for item, verdict in zip(
            twin_decision.judgement.inputs if twin_decision else (),
            twin_decision.verdicts if twin_decision else (),
            strict=True,
        )
        if verdict in (AGREES, ROUNDED)
    }
    found = [known[index] for index in left]
    if not any(item.compared for item in found):
        return [], f"no float64 to compare with: {found[0].reason}; see GL401"
    return [
        TwinJudgement(item.index, reason="its gradient in float64 could not be judged")
        if item.verdict == DIFFERS and item.index not in right
        else item
        for item in found
    ], ""


def right_in_float64_only(decision: Decision, index: int) -> TwinJudgement | None:
    """The comparison of input ``index`` where it shows that the gradient, which is right in
    float64, is wrong in this dtype; else None."""
    found, twin = decision.compared.get(index), decision.twin
    if found is None or twin is None or found.verdict != DIFFERS:
        return None
    verdicts = dict(zip((i.index for i in twin.judgement.inputs), twin.verdicts, strict=True))
    return found if verdicts.get(index) in (AGREES, ROUNDED) else None


def weight_of_difference(found: TwinJudgement) -> dict[str, Any]:
    """What elements that differ from those in float64 weigh: the fields of
    :class:`gradlint.model.report.Grounds` that are known of them."""
    errors = [
        (abs(item.low - item.wide), max(abs(item.low), abs(item.wide)))
        for item in found.elements
        if abs(item.low - item.wide) > item.allowed
    ]
    worst = max((error / size for error, size in errors if size > 0.0), default=None)
    return {
        "beyond_bar": bool(found.differing) or found.scale is not None,
        "element_error": worst,
    }


def right_in_float64(name: str) -> str:
    """The advice on a gradient that is right in float64 and not in this dtype."""
    return (
        "look for branches, casts, constants and sums that depend on the dtype: in float64 the "
        f"gradient of `{name}` is right"
    )


def cause_of_difference(found: TwinJudgement, names: Sequence[str]) -> Cause | None:
    """Why the gradients differ, where one cause explains all elements."""
    evidence = [
        Evidence(
            found.index,
            names,
            [g.to(torch.complex64 if g.is_complex() else view.dtype) for g in view.low],
            torch.arange(view.wide[found.index].numel()),
            view.wide[found.index].flatten().cpu(),
            allowed.flatten().cpu() / BARS,
            view.cotangents,
        )
        for view, allowed in zip(found.views, found.allowed, strict=True)
    ]
    name = names[found.index]
    return low_precision(evidence, name) or _cast_on_the_way(found, name) or diagnose(evidence)


def _cast_on_the_way(found: TwinJudgement, name: str) -> Cause | None:
    """A cast on the way to a sum: the error of the whole has the size of a coarser dtype's
    rounding, is spread over the elements, and has either sign."""
    wide = torch.cat([view.wide[found.index].flatten() for view in found.views])
    error = torch.cat([view.low[found.index].flatten() for view in found.views]) - wide
    total = norm(wide)
    if error.is_complex() or not total > 0.0 or not bool(torch.isfinite(error).all()):
        return None
    relative = norm(error) / total
    spread = float((error.abs() > SPREAD * error.abs().median()).double().mean())
    signs = float((error > 0).double().mean())
    if relative == 0.0 or not EITHER_SIGN <= signs <= 1.0 - EITHER_SIGN or spread < SPREAD:
        return None
    low = found.views[0].dtype
    distances = {
        abs(math.log(relative / (ROUNDED_ONCE * unit_roundoff(dtype)))): dtype
        for dtype in COARSER
        if unit_roundoff(dtype) > unit_roundoff(low)
    }
    nearest = min(distances, default=math.inf)
    if not nearest <= math.log(WITHIN):
        return None
    shown, kept = _named(distances[nearest]), _named(low)
    return Cause(
        "low-precision",
        f"low-precision: the gradient of `{name}` is right to {relative:.0e} only, with errors of "
        f"either sign: rounding to {shown} would look like this",
        f"keep what is saved, computed and added up in {kept}: no .to({shown}) or autocast in "
        "between",
        relative,
    )


def evidence_of_difference(found: TwinJudgement) -> tuple[dict[str, Any], list[int] | None]:
    """The evidence of a finding, and the index of the worst element."""
    view = found.views[0]
    shape = tuple(view.wide[found.index].shape)
    error, wide = view.low[found.index] - view.wide[found.index], view.wide[found.index]
    numbers: dict[str, Any] = {
        "differing": found.differing,
        "measured_elements": found.judged,
        "numel": wide.numel(),
        "relative_error": norm(error) / norm(wide) if norm(wide) else math.inf,
        "resolution": found.resolution,
    }
    if found.scale is not None:
        numbers["scale"] = found.scale
    ulp = unit_roundoff(view.dtype)
    numbers["elements"] = [
        {
            "index": list(unravel(item.index, shape)),
            "returned": _plain(item.low),
            "float64": _plain(item.wide),
            "error": abs(item.low - item.wide),
            "ulps": float(f"{abs(item.low - item.wide) / (ulp * abs(item.wide)):.3g}")
            if item.wide
            else None,
        }
        for item in found.elements
    ]
    first = found.elements[0].index if found.elements else None
    return numbers, None if first is None else list(unravel(first, shape))


def _plain(value: complex) -> float | str:
    return f"{value:.6g}" if isinstance(value, complex) else float(value)


def _named(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
