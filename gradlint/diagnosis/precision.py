"""Recognise gradients that were computed in, or cast to, a dtype with fewer digits."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gradlint.diagnosis.cause import Cause
from gradlint.diagnosis.evidence import Evidence, at
from gradlint.numerics.products import unit_roundoff

#: Dtypes that are considered, the coarsest first.
LOWER = (torch.bfloat16, torch.float16, torch.float32)

#: Relative to the element, errors may reach MOST_UNITS of the lower dtype's roundoff, and the
#: typical one must reach LEAST_UNITS (heuristic: one to three roundings).
MOST_UNITS, LEAST_UNITS = 4.0, 0.1

#: Smallest share of errors on either side of zero, since rounding errors have random signs
#: (heuristic).
EITHER_SIGN = 0.15

#: Fewest elements from which this is concluded (heuristic).
FEWEST = 6


def low_precision(evidence: Sequence[Evidence], name: str) -> Cause | None:
    """The cause if all errors have the size of a lower dtype's rounding, and both signs."""
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
            f"low-precision: the gradient of `{name}` is only right to {unit / 2:.0e}, the "
            f"rounding of {shown} ({errors.numel()} elements, errors of both signs"
            + (f"; {shown} represents every value exactly)" if cast else ")"),
            f"keep backward in {wide}: no .to({shown}), .half() or autocast on the way",
            float(errors.abs().max()),
        )
    return None


def cast_down(gradients: Sequence[torch.Tensor], name: str) -> Cause | None:
    """The cause if a lower dtype represents every value of every gradient exactly, which shows that
    it was cast; or None.

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
                f"low-precision: {shown} represents every value of the gradient of `{name}` "
                f"exactly, though it is returned in {wide}",
                f"keep backward in {wide}: no .to({shown}), .half() or autocast on the way",
            )
    return None
