"""Functions as the maps that numerics judge, with gradients that are right or faulty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from gradlint.numerics.map import Map

Fault = Callable[[torch.Tensor], torch.Tensor]


def make_map(
    function: Callable[..., Any],
    values: Sequence[torch.Tensor],
    *,
    vjp: Callable[..., Sequence[torch.Tensor | None]] | None = None,
    faults: dict[int, Fault] | None = None,
) -> Map:
    """``function`` at ``values`` as a map.

    Args:
        vjp: the claimed VJP, called with the cotangents and then the values; default autograd's.
        faults: input position → what is done to its claimed gradient.
    """

    def outputs(inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        found = function(*inputs)
        return list(found) if isinstance(found, (tuple, list)) else [found]

    def evaluate(inputs: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
        try:
            with torch.no_grad():
                return [item.detach() for item in outputs([x.detach() for x in inputs])]
        except (RuntimeError, ValueError):
            return None

    def pull_at(
        inputs: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]
    ) -> list[torch.Tensor | None]:
        if vjp is not None:
            found = list(vjp(*cotangents, *inputs))
        else:
            leaves = [x.detach().clone().requires_grad_() for x in inputs]
            found = list(
                torch.autograd.grad(outputs(leaves), leaves, list(cotangents), allow_unused=True)
            )
        for position, fault in (faults or {}).items():
            gradient = found[position]
            assert gradient is not None
            found[position] = fault(gradient.clone(memory_format=torch.contiguous_format))
        return found

    at_point = evaluate(values)
    assert at_point is not None
    return Map(list(values), at_point, evaluate, pull_at)


@pytest.fixture
def as_map() -> Callable[..., Map]:
    """:func:`make_map`."""
    return make_map


@pytest.fixture
def randn() -> Callable[..., torch.Tensor]:
    """``randn(*shape, seed=0, dtype=float64)``: normal numbers, drawn in float64 or complex128."""

    def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
        generator = torch.Generator().manual_seed(1000 + seed)
        wide = torch.complex128 if dtype.is_complex else torch.float64
        return torch.randn(shape, generator=generator, dtype=wide).to(dtype)

    return draw
