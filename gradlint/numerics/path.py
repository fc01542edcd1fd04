"""The path integral: the change of the function against the integral of its claimed gradient.

    φ(x₊) − φ(x₋) = ∫₀¹ ⟨g(x₋ + s·dx), dx⟩ ds

holds for any step, however long. There is no Taylor truncation, so the step may be large and the
noise small: in float32 and below it resolves more than any difference quotient. Kinks on the path
spoil the quadrature, which usually shows in its error bar, the difference of two nested rules. The
gradient does not see a jump at all, so a path counts only if finer measurements agree with it.

Source: gradlint/docs/numerics.md, section "Path integral".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from gradlint.numerics.differences import CRITICAL, TRUNCATION_SAFETY, Estimate, noise_of
from gradlint.numerics.map import Map, along
from gradlint.numerics.products import norm, real_dot, unit_roundoff, widened

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

#: Rounding error of one element of a gradient, in units of the spacing at 1 (2 sufficed in float32
#: on twelve operators: numerics.md, section "What was measured").
GRADIENT_ROUNDINGS = 2.0

#: Half lengths of the paths, relative to the size of each element: below 1, so that no element
#: crosses zero, where many functions have a kink or a pole. The second path confirms the first.
PATH_STEPS = (0.5, 0.125)


def path_integral(
    function: Map,
    index: int,
    u: torch.Tensor,
    cotangents: Sequence[torch.Tensor],
    h: float,
    *,
    kappa: float = 1.0,
) -> Estimate | None:
    """The slope that the claimed gradient leaves unexplained between x − h·u and x + h·u.

    Args:
        function: the map; its point is the middle of the path.
        index: position of the input that moves.
        u: direction, shape of that input, float64 or complex128.
        cotangents: v, one per output.
        h: half the length of the path in units of ``u``; may be of order 1.
        kappa: factor by which the noise exceeds one rounding of the outputs.

    Returns:
        The residual per unit step with its error bar (roundoff of the outputs and of the gradient,
        and the quadrature error), or None if the function or its gradient is not finite on the
        path. It costs seven VJPs and two evaluations.
    """
    path = _Path.walk(function, index, u, cotangents, h, NODES)
    if path is None:
        return None
    kronrod, gauss = path.integral(KRONROD), path.integral(GAUSS)
    return path.estimate(kronrod, TRUNCATION_SAFETY * abs(kronrod - gauss), kappa)


def path_at_a_glance(
    function: Map, index: int, u: torch.Tensor, cotangents: Sequence[torch.Tensor], h: float
) -> Estimate | None:
    """The same by the three-point Gauss rule alone: three VJPs and two evaluations. Three times its
    residual counts as quadrature error, so it can show agreement, never a disagreement."""
    path = _Path.walk(function, index, u, cotangents, h, NODES[1:-1:2])
    if path is None:
        return None
    gauss = path.integral(GAUSS[1:-1:2])
    return path.estimate(gauss, TRUNCATION_SAFETY * abs(path.change - gauss), 1.0)


@dataclass
class _Path:
    """φ(x₊) − φ(x₋), ⟨g, dx⟩ at nodes between the two, and the noise of both."""

    change: float
    integrand: list[float]
    noise: float
    rounding: float
    h: float

    @classmethod
    def walk(
        cls,
        function: Map,
        index: int,
        u: torch.Tensor,
        cotangents: Sequence[torch.Tensor],
        h: float,
        nodes: Sequence[float],
    ) -> _Path | None:
        x = function.values[index]
        wide = widened(x)
        plus, minus = (wide + h * u).to(x.dtype), (wide - h * u).to(x.dtype)
        evaluate = along(function, index)
        after, before = evaluate(plus), evaluate(minus)
        if after is None or before is None:
            return None
        if not all(
            a.shape == b.shape == v.shape for v, a, b in zip(cotangents, after, before, strict=True)
        ):
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
        for node in nodes:
            values[index] = (start + 0.5 * (1.0 + node) * moved).to(x.dtype)
            gradient = function.gradients_at(values, cotangents)[index]
            integrand.append(real_dot(gradient, moved))
            worth = max(worth, norm(widened(gradient) * moved))
        return cls(
            change,
            integrand,
            noise_of(cotangents, after, before, function.rounding),
            GRADIENT_ROUNDINGS * unit_roundoff(x.dtype) * worth,
            h,
        )

    def integral(self, weights: Sequence[float]) -> float:
        return 0.5 * sum(w * value for w, value in zip(weights, self.integrand, strict=True))

    def estimate(self, integral: float, error: float, kappa: float) -> Estimate | None:
        sigma = math.hypot(kappa * self.noise, self.rounding)
        bar = error + CRITICAL * sigma
        if not math.isfinite(self.change) or not math.isfinite(integral) or not math.isfinite(bar):
            return None
        width = 2.0 * self.h
        residual = (self.change - integral) / width
        return Estimate(residual, bar / width, self.change / width, sigma / width, self.h)
