"""Faults planted into correct operators: forward stays as it is, backward goes wrong.

The fault sits in an identity before the operator, so that every route a checker takes to the
gradient (other dtypes, other points, double backward) meets it as it would meet a wrong backward.
"""

from __future__ import annotations

from typing import Any

import torch

#: Faults by name: what becomes of the gradient's elements.
FACTOR, ZEROED, FLIPPED = "factor 1.01", "one element zeroed", "one sign flipped"
FAULTS = (FACTOR, ZEROED, FLIPPED)

#: A single wrong element is planted only where it exceeds this share of the largest.
SIZEABLE = 0.1


def faulty(gradient: torch.Tensor, fault: str, place: int) -> torch.Tensor:
    """``gradient`` with ``fault``, at the flat index ``place`` where it concerns one element."""
    if fault == FACTOR:
        return gradient * 1.01
    if gradient.layout == torch.sparse_csr:  # the index is that of a stored value
        values = faulty(gradient.values(), fault, place)
        return torch.sparse_csr_tensor(
            gradient.crow_indices(), gradient.col_indices(), values, gradient.shape
        )
    wrong = gradient.clone(memory_format=torch.contiguous_format)
    flat = wrong.view(-1)
    flat[place] = flat[place] * (0.0 if fault == ZEROED else -1.0)
    return wrong


class Faulty(torch.autograd.Function):
    """The identity with a faulty backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, fault: str, place: int) -> torch.Tensor:
        ctx.fault, ctx.place = fault, place
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        return faulty(grad, ctx.fault, ctx.place), None, None


def sizeable_place(gradient: torch.Tensor, generator: torch.Generator) -> int | None:
    """A random flat index at which ``gradient`` exceeds :data:`SIZEABLE` of its largest element;
    None where it is zero, empty or not finite throughout."""
    size = gradient.detach().abs().flatten()
    if not size.numel() or not bool(torch.isfinite(size).all()) or not bool(size.max() > 0):
        return None
    places = (size > SIZEABLE * size.max()).nonzero().flatten()
    return int(places[torch.randint(len(places), (), generator=generator)])
