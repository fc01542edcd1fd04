"""One pair (v, u) along which a sweep measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from gradlint.numerics._bank import cotangents
from gradlint.numerics._directions import move_scale, signs
from gradlint.numerics._map import Map
from gradlint.numerics._products import widened


@dataclass(frozen=True)
class Draw:
    """One pair (v, u) for one input.

    Args:
        x: the input; u: direction in float64 or complex128.
        vs: cotangents, one an output; g: claimed gradient.
    """

    x: torch.Tensor
    u: torch.Tensor
    vs: Sequence[torch.Tensor]
    g: torch.Tensor


def drawn(function: Map, index: int, seed: int, masks: Sequence[torch.Tensor] | None) -> Draw:
    """The pair for input ``index``; elements of v where ``masks`` are False are zero."""
    generator = torch.Generator().manual_seed(seed)
    x = function.values[index]
    vs = cotangents(function, generator)
    if masks is not None:
        vs = [v * mask for v, mask in zip(vs, masks, strict=True)]
    claimed = function.pull(vs)[index]
    g = torch.zeros_like(x) if claimed is None else claimed
    return Draw(x, function.projected(index, _direction(x, g, generator)), vs, g)


def _direction(x: torch.Tensor, g: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Signs that follow the claimed gradient, random where it is zero: the slope never cancels, so
    an error in it can be stated relative to it. Every element moves by half its size or more, so
    that one wrong element shows; the shares differ, so that no two equal errors cancel."""
    scale = move_scale(x)
    share = torch.rand(tuple(x.shape), generator=generator, dtype=torch.float64)
    phase = torch.sgn(widened(g))
    phase = torch.where(phase.abs() > 0.0, phase, signs(x, generator))
    return phase * scale * (0.5 + 0.5 * share).to(x.device)
