"""Gradients that went through a dtype of fewer digits."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gradlint.diagnosis.cause import Cause
from gradlint.diagnosis.evidence import Evidence, at
from gradlint.numerics.products import unit_roundoff

#: Dtypes that gradients are found cast to, the coarsest first.
LOWER = (torch.bfloat16, torch.float16, torch.float32)

#: Errors may reach this many units of the lower dtype's roundoff, relative to the element, and the
#: typical one must reach a tenth of a unit (heuristic: one to three roundings).
MOST_UNITS, LEAST_UNITS = 4.0, 0.1

#: Share of the errors on either side of zero, at least: rounding has no sign.
EITHER_SIGN = 0.15

#: Elements it takes to see that.
FEWEST = 6


def low_precision(evidence: Sequence[Evidence], name: str) -> Cause | None:
    """Whether all errors are of the size of a lower dtype's rounding, and of either sign."""
    relative, held = [], []
    for item in evidence:
        own, measured = at(item, item.own), item.measured
        good = item.good & (own.abs() > 0)
        if own.is_complex() or not bool(good.any()):
            continue
        relative.append(((own - measured) / own)[good])
        held.append((item.bars / own.abs())[good])
    if not relative:
        return None
    errors, bars = torch.cat(relative), torch.cat(held)
    if errors.numel() < FEWEST:
        return None
    exact = unit_roundoff(evidence[0].own.dtype)
    for dtype in LOWER:
        unit = unit_roundoff(dtype)
        if unit <= 4.0 * exact or float(bars.median()) > LEAST_UNITS * unit:
            continue
        if float(errors.abs().max()) > MOST_UNITS * unit + float(bars.max()):
            continue
        signs = float((errors > 0).double().mean())
        if not EITHER_SIGN <= signs <= 1.0 - EITHER_SIGN:
            return None
        cast = all(
            torch.equal(item.own.to(dtype).to(item.own.dtype), item.own) for item in evidence
        )
        if not cast and float(errors.abs().median()) < LEAST_UNITS * unit:
            continue
        shown = str(dtype).removeprefix("torch.")
        wide = str(evidence[0].own.dtype).removeprefix("torch.")
        return Cause(
            "low-precision",
            f"low-precision: the gradient of `{name}` is right to the {unit / 2:.0e} of {shown} "
            f"only ({errors.numel()} elements, errors of either sign"
            + (f"; every value is one of {shown})" if cast else ")"),
            f"keep backward in {wide}: no .to({shown}), .half() or autocast on the way",
            float(errors.abs().max()),
        )
    return None


def cast_down(gradients: Sequence[torch.Tensor], name: str) -> Cause | None:
    """Whether every value of every gradient is one of a lower dtype: it was cast on the way.

    Args:
        gradients: returned for one input under different cotangents.
    """
    values = [g for g in gradients if g.is_floating_point() and bool((g != 0).any())]
    if not values:
        return None
    exact = unit_roundoff(values[0].dtype)
    for dtype in LOWER:
        if unit_roundoff(dtype) <= 4.0 * exact:
            continue
        if all(torch.equal(g.to(dtype).to(g.dtype), g) for g in values):
            shown, wide = (str(each).removeprefix("torch.") for each in (dtype, values[0].dtype))
            return Cause(
                "low-precision",
                f"low-precision: every value of the gradient of `{name}` is one of {shown}, though "
                f"it is returned in {wide}",
                f"keep backward in {wide}: no .to({shown}), .half() or autocast on the way",
            )
    return None
