"""Inputs that live in a part of their space: in which directions they may move."""

from __future__ import annotations

import torch

from gradlint.numerics._directions import cotangent, move_scale
from gradlint.numerics._judge import Projection
from gradlint.numerics._products import widened
from gradlint.trace._problem import OpRaised, Problem

#: Domain of a sample whose matrices equal their (conjugate) transposes, as `inputs` words it.
SYMMETRIC = "symmetric positive definite"

#: Share of its size by which a triangle is moved to see whether the op reads it (heuristic).
MOVE = 2.0**-10

#: Relative asymmetry up to which a returned gradient counts as symmetric (heuristic: rounding).
ASYMMETRY = 1e-4


def projections(problem: Problem) -> list[Projection | None]:
    """For each input, how directions are kept inside its domain: symmetric matrices move
    symmetrically, since ops on them may read one triangle or both."""
    domains = problem.sample.domains
    return [
        symmetric
        if item.value.dim() >= 2
        and (domains.get(item.name) == SYMMETRIC or reads_one_triangle(problem, position))
        else None
        for position, item in enumerate(problem.inputs)
    ]


def symmetric(direction: torch.Tensor) -> torch.Tensor:
    """The Hermitian part of a direction of matrices."""
    return (direction + direction.mH) / 2


def reads_one_triangle(problem: Problem, position: int) -> bool:
    """Whether input ``position`` stands for a symmetric matrix although nothing declares it: it
    equals its conjugate transpose, forward reads one triangle of it alone, and backward returns a
    gradient that is symmetric too (as Cholesky factors and eigenvalues in PyTorch do)."""
    value = problem.inputs[position].value
    size = value.shape[-1] if value.dim() >= 2 else 0
    if size < 2 or value.shape[-2] != size or value.layout != torch.strided:
        return False
    if not value.numel() or not torch.equal(value, value.mH):
        return False
    move = MOVE * widened(torch.ones_like(value)) * move_scale(value)

    def outputs(triangle: torch.Tensor) -> list[torch.Tensor]:
        values = problem.values()
        values[position] = (widened(value) + triangle).to(value.dtype)
        return [item.value for item in problem.forward(values)]

    try:
        here = outputs(torch.zeros_like(move))
        read = [
            [not torch.equal(a, b) for a, b in zip(here, outputs(part), strict=True)]
            for part in (move.tril(-1), move.triu(1))
        ]
        if any(read[0]) == any(read[1]):
            return False
        generator = torch.Generator().manual_seed(problem.seed)
        _, at_sample = problem.linearize()
        gradient = problem.pull(
            {
                item.name: cotangent(item.value.detach(), generator)
                for item in at_sample
                if item.differentiable
            }
        )[position]
    except (OpRaised, ValueError):
        return False
    if gradient is None or gradient.shape != value.shape or gradient.layout != torch.strided:
        return False
    wide = widened(gradient)
    if wide.is_complex():
        # PyTorch leaves an anti-Hermitian part, which no Hermitian move sees; what tells is that
        # the triangle that is not read has a gradient.
        unread = wide.tril(-1) if any(read[1]) else wide.triu(1)
        return bool(unread.abs().max() > ASYMMETRY * wide.abs().max())
    return bool((wide - wide.mT).abs().max() <= ASYMMETRY * wide.abs().max())
