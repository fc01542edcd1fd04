"""Lines that clamp to an empty range, count from the end, or solve with a singular matrix."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from gradlint.trace.size_edges import SizeEdges

Forward = Callable[[torch.Tensor], torch.Tensor]


def edges(forward: Forward, size: int) -> SizeEdges:
    watched = SizeEdges()
    with watched:
        forward(torch.arange(float(size)))
    return watched


def index(x: torch.Tensor, place: int) -> torch.Tensor:
    return x[torch.tensor([0, place])]


def normal_equations(x: torch.Tensor, rows: int) -> torch.Tensor:
    """A Aᵀ for a matrix A of so many rows, and of as many columns as x has elements."""
    a = torch.sin(torch.arange(1.0, 1.0 + rows)[:, None] * (1.0 + x.double()))
    return a @ a.mT


RUN_OUT: dict[str, Forward] = {
    "clamp": lambda x: x.clamp(0, len(x) - 2),
    "clamp in place": lambda x: x.clone().clamp_(0, len(x) - 2),
    "clip by words": lambda x: torch.clip(x, min=0, max=len(x) - 2),
    "clamp to tensors": lambda x: torch.clamp(x, torch.tensor(0.0), torch.tensor(len(x) - 2.0)),
    "index by a tensor": lambda x: index(x, len(x) - 2),
    "select": lambda x: x[min(max(3, 0), len(x) - 2)],
    "slice": lambda x: x[: len(x) - 2],
    "solve": lambda x: torch.linalg.solve_ex(normal_equations(x, 2), torch.eye(2).double())[0],
    "invert": lambda x: torch.linalg.inv_ex(normal_equations(x, 2))[0],
    "factor": lambda x: torch.linalg.lu_factor_ex(normal_equations(x, 2))[0],
}
IN_BOUNDS: dict[str, Forward] = {
    "clamp to all": lambda x: x.clamp(0, len(x) - 1),
    "one bound": lambda x: x.clamp(min=2),
    "empty at every size": lambda x: x.clamp(3, 2),
    "from the end at every size": lambda x: x[-1],
    "a branch": lambda x: x[-1] if len(x) == 1 else x[0],
    "nothing laid out": lambda x: torch.arange(len(x) - 1),
    "a mask": lambda x: x[x > 0],
    "solve with one row": lambda x: torch.linalg.inv_ex(normal_equations(x, 1))[0],
    "badly conditioned": lambda x: torch.linalg.inv_ex(torch.diag(x.double() * 1e10 + 1e-2))[0],
    "singular at every size": lambda x: torch.linalg.inv_ex(normal_equations(x, 6))[0],
}


@pytest.mark.parametrize("name", RUN_OUT)
def test_a_line_runs_out(name: str) -> None:
    before = edges(RUN_OUT[name], 4)
    assert not before.beyond
    assert edges(RUN_OUT[name], 1).ran_out(before)
    assert not edges(RUN_OUT[name], 3).ran_out(before)


@pytest.mark.parametrize("name", IN_BOUNDS)
def test_a_line_does_not(name: str) -> None:
    assert not edges(IN_BOUNDS[name], 1).ran_out(edges(IN_BOUNDS[name], 4))
