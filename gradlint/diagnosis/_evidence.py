"""What is known of a wrong gradient under one cotangent, and how hypotheses are held against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

#: A hypothesis explains an element that it meets within this share of the largest measured one,
#: or within its error bar (heuristic; measured elements carry 8 digits or more in float64).
EXPLAINED = 1e-5

#: In units of the error bar, likewise.
BARS = 10.0


@dataclass
class Evidence:
    """One cotangent's worth of evidence about input ``index``.

    Args:
        index: position of the input among the differentiable ones.
        names: names of all differentiable inputs.
        claimed: the gradients returned for all of them.
        elements: flat positions measured in input ``index``.
        measured: the derivative at each of them.
        bars: their error bars.
        cotangents: what backward was given, one an output.
    """

    index: int
    names: Sequence[str]
    claimed: Sequence[torch.Tensor]
    elements: torch.Tensor
    measured: torch.Tensor
    bars: torch.Tensor
    cotangents: Sequence[torch.Tensor]

    @property
    def own(self) -> torch.Tensor:
        """The gradient returned for this input."""
        return self.claimed[self.index]


def wrong_elements(item: Evidence) -> torch.Tensor:
    """True for every measured element that the returned gradient misses, bars allowed for."""
    own, measured = at(item, item.own), item.measured
    floor = EXPLAINED * max(largest(measured), largest(own))
    error = (own - measured).abs()
    return torch.isfinite(measured.abs()) & (error > torch.clamp(BARS * item.bars, min=floor))


def unravel(flat: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The multi-index of position ``flat`` in a row-major tensor of ``shape``."""
    index = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))


def misfit_of(evidence: Sequence[Evidence], candidates: Sequence[torch.Tensor]) -> float | None:
    """Largest relative deviation of the candidates from the measurement; None if unexplained."""
    worst = 0.0
    for item, candidate in zip(evidence, candidates, strict=True):
        if candidate.shape != item.own.shape:
            return None
        measured = item.measured
        good = torch.isfinite(measured.abs())
        error = (at(item, candidate) - measured).abs()[good]
        top = largest(measured)
        if bool((error > torch.clamp(BARS * item.bars[good], min=EXPLAINED * top)).any()):
            return None
        if error.numel() and top > 0.0:
            worst = max(worst, float(error.max()) / top)
    return worst


def at(item: Evidence, gradient: torch.Tensor) -> torch.Tensor:
    wide = torch.complex128 if gradient.is_complex() else torch.float64
    flat = gradient.detach().reshape(-1).to(wide)
    return flat[item.elements.to(flat.device)].cpu()


def largest(tensor: torch.Tensor) -> float:
    finite = tensor.detach().abs()
    finite = finite[torch.isfinite(finite)]
    return float(finite.max()) if finite.numel() else 0.0
