"""Directions u in which inputs are moved, and cotangents v with which outputs are weighted.

All are signed and drawn from a seeded generator: a checker whose directions are non-negative, or
the same in every run, is blind to errors that cancel along them. See gradlint/docs/numerics.md,
section "Directions and cotangents".
"""

from __future__ import annotations

import math

import torch

from gradlint.numerics.products import norm, rms, unit_roundoff, widened

#: Elements smaller than this share of the tensor's RMS move as if they were this large
#: (heuristic: without a floor, exact zeros would never move and their gradient never be judged).
SMALLEST_RELATIVE_MOVE = 0.1

#: Cotangent elements have magnitudes in [1 − SPREAD, 1 + SPREAD]: distinct, and never so small that
#: an error of one output goes unnoticed (chainer floors direction entries for the same reason).
COTANGENT_SPREAD = 0.5

#: Kinds of direction, see :func:`direction`.
KINDS = ("aligned", "random", "equalised", "signs")

#: An output smaller than this many of its own rounding errors consists of rounding (heuristic:
#: three digits).
ROUNDINGS = 1e3

#: Elements of a random direction move at least this share of their scale, so that an error of any
#: of them shows (heuristic).
LEAST_RANDOM = 0.25


def move_scale(x: torch.Tensor) -> torch.Tensor:
    """How far each element may move per unit step: its own magnitude, with a floor; float64.

    Infinite elements (as in masks) and NaN do not move.
    """
    magnitude = widened(x).abs()
    typical = rms(x)
    if not math.isfinite(typical):
        finite = torch.isfinite(magnitude)
        if not bool(finite.any()):
            return torch.zeros_like(magnitude)
        scale = torch.zeros_like(magnitude)
        scale[finite] = move_scale(widened(x)[finite])
        return scale
    if typical == 0.0:
        return torch.ones_like(magnitude)
    return magnitude.clamp_min_(SMALLEST_RELATIVE_MOVE * typical)


def signs(like: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Random signs (unit phases for complex tensors) in the shape of ``like``, float64."""
    shape = tuple(like.shape)
    if like.is_complex():
        angle = torch.rand(shape, generator=generator, dtype=torch.float64) * (2 * torch.pi)
        return torch.polar(torch.ones_like(angle), angle).to(like.device)
    drawn = torch.empty(shape, dtype=torch.float64).uniform_(-1.0, 1.0, generator=generator)
    return drawn.sign_().to(like.device)


def direction(
    kind: str, x: torch.Tensor, claimed: torch.Tensor, generator: torch.Generator
) -> torch.Tensor:
    """A direction u for input ``x`` with |uᵢ| ≤ sᵢ, s = :func:`move_scale`; float64.

    Args:
        kind: "aligned" follows the claimed gradient, so that its signal is about √n larger;
            "signs" is ±sᵢ, so that one wrong element stays visible and can be located;
            "equalised" moves elements of large gradient less, so that small ones count;
            "random" is random in magnitude too, so that no pair of elements cancels exactly.
        x: the input, any shape.
        claimed: the gradient backward returned for it, same shape.
        generator: source of the random numbers, on the CPU.
    """
    scale = move_scale(x)
    if kind == "aligned" or kind == "equalised":
        gradient = torch.nan_to_num(widened(claimed), nan=0.0, posinf=0.0, neginf=0.0)
        weight = gradient.abs().mul_(scale)
        top = float(weight.max()) if weight.numel() else 0.0
        if kind == "aligned" and top > 0.0:
            return torch.sgn(gradient).mul_(scale).mul_(weight.div_(top))
        if top > 0.0:
            small = _low_decile(weight)
            return signs(x, generator).mul_(scale).mul_(small / weight.clamp_min_(small))
    if kind == "random":
        drawn = torch.empty(tuple(x.shape), dtype=torch.float64)
        drawn.uniform_(LEAST_RANDOM, 1.0, generator=generator)
        return signs(x, generator).mul_(scale).mul_(drawn.to(x.device))
    return signs(x, generator).mul_(scale)


def cotangent(
    output: torch.Tensor, generator: torch.Generator, rounding: float = 0.0
) -> torch.Tensor:
    """A signed cotangent for ``output``, of magnitude about 1/RMS(output), in its dtype.

    The scaling gives outputs of very different size the same weight in one sum.

    Args:
        output: the output to be weighted, any shape.
        generator: source of the random numbers, on the CPU.
        rounding: standard deviation of the rounding error of an element. An output hardly larger
            than that is scaled by the size of the terms that cancelled in it instead.
    """
    shape = tuple(output.shape)
    spread = torch.empty(shape, dtype=torch.float64)
    spread.uniform_(1.0 - COTANGENT_SPREAD, 1.0 + COTANGENT_SPREAD, generator=generator)
    typical = rms(output)
    if typical < ROUNDINGS * rounding:
        typical = rounding / unit_roundoff(output.dtype)
    if not 1e-3 < typical < 1e3:  # leave ordinary sizes alone: cotangents of order 1 read best
        spread = spread / typical if 0.0 < typical < float("inf") else spread
    return signs(output, generator).mul_(spread.to(output.device)).to(output.dtype)


def product_norm(claimed: torch.Tensor, u: torch.Tensor) -> float:
    """‖g∘u‖₂: the typical size of ⟨g, u⟩ for random signs of u, whose terms do not all cancel."""
    return norm(widened(claimed).abs() * widened(u).abs())


def _low_decile(weight: torch.Tensor, limit: int = 4096) -> float:
    """The tenth percentile of the positive elements, of about ``limit`` of them."""
    flat = weight.reshape(-1)
    thinned = flat[:: max(1, flat.numel() // limit)]
    positive = thinned[thinned > 0]
    if not positive.numel():
        positive = flat[flat > 0]
    return float(positive.kthvalue(1 + positive.numel() // 10).values)
