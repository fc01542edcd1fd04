"""The path integral: what the function changes by against the integral of its claimed gradient.

φ(x₊) − φ(x₋) = ∫₀¹ ⟨g(x₋ + s·dx), dx⟩ ds holds for any step, however long: there is no Taylor
truncation, so the step may be large and the noise small. In float32 and below it resolves more
than any difference quotient. Kinks on the path slow the quadrature down, which its error bar (the
difference of two nested rules) tells mostly; a jump is not seen by the gradient at all, and so a
path counts only where finer measurements bear it out.
"""

from __future__ import annotations

import math

import torch

from gradlint.numerics._differences import (
    CRITICAL,
    TRUNCATION_SAFETY,
    Estimate,
    noise_of,
)
from gradlint.numerics._map import Map, along
from gradlint.numerics._products import norm, real_dot, unit_roundoff, widened

#: Abscissae in [−1, 1] and weights of the 7-point Kronrod extension of the 3-point Gauss rule
#: (Kronrod 1965; Laurie 1997). Every second abscissa is a Gauss node.
NODES = (
    -0.9604912687080202,
    -0.7745966692414834,
    -0.4342437493468026,
    0.0,
    0.4342437493468026,
    0.7745966692414834,
    0.9604912687080202,
)
KRONROD = (
    0.1046562260264673,
    0.2684880898683334,
    0.4013974147759622,
    0.4509165386584741,
    0.4013974147759622,
    0.2684880898683334,
    0.1046562260264673,
)
GAUSS = (0.0, 5.0 / 9.0, 0.0, 8.0 / 9.0, 0.0, 5.0 / 9.0, 0.0)

#: Roundings in one element of a gradient, in units of the spacing at 1 (peers' studies: 2 suffices
#: in float32 on twelve operators).
GRADIENT_ROUNDINGS = 2.0


#: Half lengths of the paths walked, relative to the size of each element: below 1, so that no
#: element crosses zero, where many functions have a kink or a pole; the second bears out the first.
PATH_STEPS = (0.5, 0.125)


def path_integral(
    function: Map,
    index: int,
    u: torch.Tensor,
    cotangents: list[torch.Tensor],
    h: float,
    *,
    kappa: float = 1.0,
) -> Estimate | None:
    """The slope that the claimed gradient leaves unexplained between x − h·u and x + h·u.

    Args:
        function: the map; its point is the middle of the path.
        index: position of the input that moves.
        u: direction, shape of that input, float64 or complex128.
        cotangents: v, one an output.
        h: half the length of the path in units of ``u``; may be of order 1.
        kappa: factor by which noise exceeds one rounding of the outputs.

    Returns:
        The residual per unit step with its error bar (roundoff of the outputs and of the gradient,
        and the quadrature's own error), or None where function or gradient is not finite on the
        path. Seven VJPs and two evaluations.
    """
    x = function.values[index]
    wide = widened(x)
    plus, minus = (wide + h * u).to(x.dtype), (wide - h * u).to(x.dtype)
    evaluate = along(function, index)
    after, before = evaluate(plus), evaluate(minus)
    if after is None or before is None:
        return None
    if any(a.shape != v.shape for v, a in zip(cotangents, after, strict=True)):
        return None
    if any(a.shape != b.shape for a, b in zip(after, before, strict=True)):
        return None
    change = sum(
        real_dot(v, widened(high) - widened(low))
        for v, high, low in zip(cotangents, after, before, strict=True)
    )
    start = widened(minus)
    moved = widened(plus) - start
    moved = torch.where(torch.isfinite(moved), moved, torch.zeros_like(moved))
    integrand, worth = [], 0.0
    values = list(function.values)
    for node in NODES:
        values[index] = (start + 0.5 * (1.0 + node) * moved).to(x.dtype)
        gradient = function.pull_at(values, cotangents)[index]
        if gradient is None:
            integrand.append(0.0)
            continue
        integrand.append(real_dot(gradient, moved))
        worth = max(worth, norm(widened(gradient).abs() * moved.abs()))
    kronrod = 0.5 * sum(w * value for w, value in zip(KRONROD, integrand, strict=True))
    gauss = 0.5 * sum(w * value for w, value in zip(GAUSS, integrand, strict=True))
    sigma = math.hypot(
        kappa * noise_of(cotangents, after, before, function.rounding),
        GRADIENT_ROUNDINGS * unit_roundoff(x.dtype) * worth,
    )
    bar = TRUNCATION_SAFETY * abs(kronrod - gauss) + CRITICAL * sigma
    if not math.isfinite(change) or not math.isfinite(kronrod) or not math.isfinite(bar):
        return None
    width = 2.0 * h
    return Estimate((change - kronrod) / width, bar / width, change / width, sigma / width, h)
