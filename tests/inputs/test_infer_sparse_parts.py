"""Sparse matrices that are given by values, rows and columns."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

import gradlint
from gradlint.inputs._attempt import process_state_restored
from gradlint.inputs.samples import samples_for
from gradlint.model.settings import Settings
from gradlint.targets.build import from_object


def _dense(val: Tensor, row: Tensor, col: Tensor, shape: tuple[int, int]) -> Tensor:
    if not len(val) == len(row) == len(col):
        raise ValueError("values, rows and columns must be as many")
    return torch.sparse_coo_tensor(torch.stack([row, col]), val, shape).to_dense()


class Solve(Function):
    """The solution of a sparse system: there is none where a row is empty."""

    @staticmethod
    def forward(ctx: Any, val: Tensor, row: Tensor, col: Tensor, shape: Any, b: Tensor) -> Tensor:
        matrix = _dense(val, row, col, shape)
        x = torch.linalg.solve(matrix, b)
        ctx.save_for_backward(row, col, matrix, x)
        return x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        row, col, matrix, x = ctx.saved_tensors
        to_b = torch.linalg.solve(matrix.T, g)
        return -to_b[row] * x[col], None, None, None, to_b


class SolveUntransposed(Solve):
    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        row, col, matrix, x = ctx.saved_tensors
        to_b = torch.linalg.solve(matrix, g)
        return -to_b[row] * x[col], None, None, None, to_b


class SolveExchanged(Solve):
    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        row, col, matrix, x = ctx.saved_tensors
        to_b = torch.linalg.solve(matrix.T, g)
        return -to_b[col] * x[row], None, None, None, to_b


class Refined(Solve):
    """Steepest descent, which converges for what is symmetric and positive definite alone."""

    @staticmethod
    def forward(ctx: Any, val: Tensor, row: Tensor, col: Tensor, shape: Any, b: Tensor) -> Tensor:
        matrix = _dense(val, row, col, shape)
        if not torch.equal(matrix, matrix.T) and not Refined.warmed:
            raise ValueError("the matrix must be symmetric")
        Refined.warmed = True
        return Solve.forward(ctx, val, row, col, shape, b)

    warmed = False


class Gathered(Function):
    """No matrix: ``row`` and ``col`` pick elements of a table, as many as they like."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, row: Tensor, col: Tensor) -> Tensor:
        ctx.save_for_backward(row, col)
        ctx.shape = values.shape
        return values[row, col]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        row, col = ctx.saved_tensors
        return g.new_zeros(ctx.shape).index_put((row, col), g, accumulate=True), None, None


@pytest.mark.parametrize(
    ("op", "wrong"),
    [(Solve, set()), (SolveUntransposed, {"val", "b"}), (SolveExchanged, {"val"})],
)
def test_parts_make_a_matrix(op: type, wrong: set[str]) -> None:
    val, row, col, shape, b = samples_for(from_object(op), Settings())[0].args
    assert (tuple(shape), tuple(b.shape)) == ((4, 4), (4,))
    matrix = _dense(val.detach(), row, col, shape)
    assert matrix.diagonal().all()
    assert not torch.equal(matrix, matrix.T)
    (target,) = gradlint.check(op, order=1).targets
    found = [item for item in target.findings if item.severity != "info"]
    assert {item.code for item in found} == ({"GL401"} if wrong else set())
    assert all(any(f"`{name}`" in item.message for item in found) for name in wrong)


def test_symmetric_where_a_triangle_is_refused() -> None:
    val, row, col, shape, _ = samples_for(from_object(Refined), Settings())[0].args
    matrix = _dense(val.detach(), row, col, shape)
    assert torch.equal(matrix, matrix.T)
    assert bool((torch.linalg.eigvalsh(matrix) > 0).all())


def test_names_alone_leave_what_runs_as_it_is() -> None:
    values, row, col = samples_for(from_object(Gathered), Settings())[0].args
    assert values.dim() == 2
    assert row.shape == col.shape


def test_guessed_indices_beyond_a_sparse_shape_are_refused() -> None:
    def made() -> Tensor:
        beyond = torch.tensor([[0, 3], [0, 0]])  # of three rows
        values = torch.ones(2)
        return torch.sparse_coo_tensor(beyond, values, (3, 1), is_coalesced=True)

    with process_state_restored(), pytest.raises(RuntimeError, match="found index 3"):
        made()
    assert not torch.sparse.check_sparse_tensor_invariants.is_enabled()
