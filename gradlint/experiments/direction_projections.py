"""Inputs that are confined to a part of their space: in which directions they may move."""

from __future__ import annotations

import torch

from gradlint.numerics.directions import cotangent, move_scale
from gradlint.numerics.map import Projection
from gradlint.numerics.products import widened
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem

#: Domain of a sample whose matrices equal their (conjugate) transposes, as `inputs` words it.
SYMMETRIC = "symmetric positive definite"

#: Domains of matrices that were guessed because backward may only be right within them.
WITHIN: dict[str, Projection] = {
    "skew-symmetric": lambda u: (u - u.mT) / 2,
    "lower triangular": lambda u: u.tril(),
    "upper triangular": lambda u: u.triu(),
}

#: Share of its size by which a triangle is moved to see whether the op reads it (heuristic).
MOVE = 2.0**-10

#: Relative asymmetry up to which a returned gradient counts as symmetric (heuristic: rounding).
ASYMMETRY = 1e-4


def projections(problem: Problem) -> list[Projection | None]:
    """For each input, how directions are kept inside its domain: symmetric matrices move
    symmetrically, since ops on them may read one triangle or both. Of a sparse matrix only the
    stored elements move, which keeps a triangle one."""
    domains = problem.sample.domains
    found: list[Projection | None] = [None] * len(problem.inputs)
    open_ones = []
    for position, item in enumerate(problem.inputs):
        if item.value.dim() < 2 or item.value.layout != torch.strided:
            continue
        if domains.get(item.name) == SYMMETRIC:
            found[position] = symmetric
        elif domains.get(item.name, "") in WITHIN:
            found[position] = WITHIN[domains[item.name]]
        elif _square(item.value):
            open_ones.append(position)
    if open_ones:
        gradients = _gradients(problem)
        for position in open_ones:
            if reads_one_triangle(problem, position, gradients[position]):
                found[position] = symmetric
    return found


def symmetric(direction: torch.Tensor) -> torch.Tensor:
    """The Hermitian part of a direction of matrices."""
    return (direction + direction.mH) / 2


def reads_one_triangle(problem: Problem, position: int, gradient: torch.Tensor | None) -> bool:
    """Whether input ``position`` stands for a symmetric matrix although nothing declares it:
    backward returns a symmetric ``gradient``, and forward reads one triangle alone (as Cholesky
    factors and eigenvalues in PyTorch do)."""
    value = problem.inputs[position].value
    if not _square(value) or gradient is None or gradient.shape != value.shape:
        return False
    if gradient.layout != torch.strided:
        return False
    wide = widened(gradient)
    negligible = ASYMMETRY * wide.abs().max()
    if not value.is_complex() and not bool((wide - wide.mT).abs().max() <= negligible):
        return False
    move = MOVE * widened(torch.ones_like(value)) * move_scale(value)

    def outputs(triangle: torch.Tensor) -> list[torch.Tensor]:
        values = problem.values()
        values[position] = (widened(value) + triangle).to(value.dtype)
        return [item.value for item in problem.forward(values)]

    try:
        here = outputs(torch.zeros_like(move))
        lower, upper = (
            any(not torch.equal(a, b) for a, b in zip(here, outputs(part), strict=True))
            for part in (move.tril(-1), move.triu(1))
        )
    except (OpRaised, ValueError):
        return False
    if lower == upper:
        return False
    if value.is_complex():
        # PyTorch leaves an anti-Hermitian part, which no Hermitian move shows; the sign is that the
        # triangle that is not read has a gradient.
        unread = wide.tril(-1) if upper else wide.triu(1)
        return bool(unread.abs().max() > negligible)
    return True


def _square(value: torch.Tensor) -> bool:
    size = value.shape[-1] if value.dim() >= 2 else 0
    strided = value.layout == torch.strided
    return size >= 2 and value.shape[-2] == size and strided and value.numel() > 0


def _gradients(problem: Problem) -> list[torch.Tensor | None]:
    generator = torch.Generator().manual_seed(problem.seed)
    try:
        leaves, outputs = problem.linearize()
        chosen = [item for item in outputs if item.differentiable]
        cotangents = [cotangent(item.value.detach(), generator) for item in chosen]
        return problem.backward(chosen, leaves, cotangents)
    except OpRaised:
        return [None] * len(problem.inputs)
