"""The size of a claimed gradient along one draw, compared with the outputs that measure it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from gradlint.numerics.bank import Probe
from gradlint.numerics.map import Map
from gradlint.numerics.products import norm, unit_roundoff, widened

#: If the claimed gradient is zero, resolving power is stated relative to this share of ‖v∘f‖, by
#: significand bits (heuristic: the same shares as MIN_RESOLUTION).
SHARE_OF_OUTPUT = {53: 1e-3, 24: 3e-2, 11: 1e-1, 8: 3e-1}


@dataclass(frozen=True)
class Worth:
    """The size of a gradient g along a move u, under cotangents v of outputs f.

    Args:
        product: ‖g∘u‖.
        top: max|g∘u|, or a share of the outputs if the gradient is negligible compared with them.
        weighed: ‖v∘f‖, with the rounding that the outputs carry from earlier.
        rounding: the effect of one rounding of outputs of order one. A function that does not
            change at all, although the claimed change is below this, may have lost the change in
            intermediate numbers of order one, as 1 − erf(x) does.
        finite: whether g∘u is finite.
    """

    product: float
    top: float
    weighed: float
    rounding: float
    finite: bool


def weigh(function: Map, index: int, probe: Probe, bits: int, unit: float) -> Worth:
    """The size of the gradient of input ``index`` along ``probe``.

    Args:
        function: the map that is judged.
        index: position of the input.
        probe: the draw.
        bits: significand bits of the lowest dtype involved.
        unit: roundoff of the coarsest output.
    """
    products = widened(probe.gradients[index]) * probe.moves[index]
    # Zero tensors made by autograd have no memory to write to.
    fresh = products.is_complex() or products._is_zerotensor()
    products = products.abs() if fresh else products.abs_()
    top = float(products.max()) if products.numel() else 0.0
    known = function.rounding or [0.0] * len(function.outputs)
    weighed = sum(
        norm(widened(v) * torch.nan_to_num(widened(y)))
        + (norm(v) * sigma / unit_roundoff(y.dtype) if sigma > 0.0 else 0.0)
        for v, y, sigma in zip(probe.cotangents, function.outputs, known, strict=True)
    )
    outputs = sum(y.numel() for y in function.outputs)
    floor = SHARE_OF_OUTPUT[bits] * weighed / math.sqrt(max(outputs, 1))
    rounding = unit * math.hypot(*(norm(v) for v in probe.cotangents))
    finite = top < float("inf")  # false for NaN too
    return Worth(norm(products), max(top, floor), weighed, rounding, finite)
