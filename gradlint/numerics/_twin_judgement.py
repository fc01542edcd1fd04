"""What is known of a gradient in low precision beside its float64 twin."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch

from gradlint.numerics._judge import UNSURE
from gradlint.numerics._products import norm, real_dot, widened

#: Elements below this share of the largest say nothing about the resolution.
SMALL = 0.1

#: Worst elements kept as evidence.
SHOWN = 3


@dataclass(frozen=True)
class TwinElement:
    """One element: flat index, value in the low dtype, value in float64, difference allowed."""

    index: int
    low: complex
    wide: complex
    allowed: float


@dataclass
class TwinView:
    """Both gradients under one cotangent, and how far emulated rounding moves the wide one.

    Args:
        dtype: the low one.
        cotangents: one an output, widened.
        low, wide: gradients of all inputs, in float64.
        squares: sum over draws of the squared moves of each element.
        scales: likewise, of the scale of each gradient.
        draws: number of emulated runs.
        farthest: the farthest that louder rounding moved each element, once that was looked for.
    """

    dtype: torch.dtype
    cotangents: list[torch.Tensor]
    low: list[torch.Tensor]
    wide: list[torch.Tensor]
    squares: list[torch.Tensor]
    scales: list[float]
    draws: int = 0
    farthest: list[torch.Tensor] = field(default_factory=list)


@dataclass
class TwinJudgement:
    """The verdict on one input.

    Args:
        index: position of the input.
        verdict: "agrees", "differs" or "unsure".
        resolution: smallest relative error that would have been seen in every second one of the
            judged elements that are at least a tenth of the largest of them; inf without any.
        elements: those farthest beyond what is allowed, or nearest to it; the worst first.
        reason: why nothing could be told.
        compared: the two are the same function, so that there was something to compare.
        differing, judged, unjudged: numbers of elements, under the clearest cotangent.
        scale: factor by which the gradient as a whole is off, where that is what differs.
        views: what the verdict rests on, where it is "differs".
        allowed: the difference allowed to each element, under each of ``views``.
    """

    index: int
    verdict: str = UNSURE
    resolution: float = math.inf
    elements: list[TwinElement] = field(default_factory=list)
    reason: str = ""
    compared: bool = True
    differing: int = 0
    judged: int = 0
    unjudged: int = 0
    scale: float | None = None
    views: list[TwinView] = field(default_factory=list)
    allowed: list[torch.Tensor] = field(default_factory=list)


def moved(found: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """|found − base|; inf where one is not finite and they are not the same."""
    a, b = widened(found), widened(base)
    if a.shape != b.shape:
        return torch.full_like(b.abs(), math.inf)
    moved = (a - b).abs()
    same = (a == b) | (torch.isnan(a.abs()) & torch.isnan(b.abs()))
    return moved.nan_to_num(nan=math.inf, posinf=math.inf).where(~same, 0.0)


def off_scale(found: torch.Tensor, base: torch.Tensor) -> float:
    """Re⟨found − base, base⟩ / ⟨base, base⟩: by what share the whole is too large."""
    size = norm(base)
    weight = size * size
    return real_dot(base, found - base) / weight if weight > 0.0 else 0.0


def worst_elements(
    low: torch.Tensor,
    wide: torch.Tensor,
    error: torch.Tensor,
    allowed: torch.Tensor,
    judged: torch.Tensor,
) -> list[TwinElement]:
    """The elements that exceed what is allowed the most, or come nearest to it."""
    excess = (error / allowed).where(judged, -1.0).flatten()
    flat = [tensor.flatten() for tensor in (low, wide, allowed)]
    return [
        TwinElement(place, *(tensor[place].item() for tensor in flat))
        for place in torch.topk(excess, min(SHOWN, excess.numel())).indices.tolist()
        if float(excess[place]) >= 0.0
    ]


def resolving_power(wide: torch.Tensor, allowed: torch.Tensor, judged: torch.Tensor) -> float:
    """Median of allowed/|wide| over the judged elements that are not small; inf without any."""
    magnitude, allowed = wide.abs()[judged], allowed[judged]
    if not magnitude.numel():
        return math.inf
    top = float(magnitude.max())
    if top == 0.0:
        return float(allowed.max())
    large = magnitude >= SMALL * top
    return float((allowed / magnitude)[large].median())
