"""Sparse matrices that are given by their parts: values, and the rows and columns of these.

Values, rows and columns that are drawn one by one hardly ever make a matrix: their numbers must
agree, an index that is too large reads beyond the matrix, and a system with an empty row has no
solution.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from gradlint.inputs import _names
from gradlint.inputs._plan import GroupGuess, Guess, Plan, TensorGuess, ValueGuess
from gradlint.inputs._source import plain_function, syntax
from gradlint.model.op import Op
from gradlint.targets.source_file import dotted

_ROWS = "row rows row_* rows_* *_row *_rows"
_COLUMNS = "col cols col_* cols_* *_col *_cols column columns column_* *_column"
_VALUES = "val vals value values val_* values_* *_val *_vals *_values data nnz_values entries"
_SHAPES = "shape size *_shape *_size mat_shape"
_NUMBERS = "m n n_rows n_cols num_rows num_cols nrows ncols rows_count num_nodes dim"

#: Functions that make a sparse matrix.
_MAKERS = frozenset({"sparse_coo_tensor", "coo_matrix", "coo_array", "csr_matrix", "csc_matrix"})

#: Rows, and columns, of the matrices.
_SIZE = 4
#: A triangle that is not empty anywhere on its diagonal: whatever its values are, a system with it
#: has a solution; and it is not like its transpose.
_TRIANGLE = ((0, 0), (1, 0), (1, 1), (2, 1), (2, 2), (3, 0), (3, 3))
#: Above the diagonal, of a symmetric matrix that is larger on it: what iterates converges.
_ABOVE = ((0, 1), (1, 2), (0, 3))

#: Costs against the likeliest plan: where the code makes a sparse matrix of the parts, an index
#: that is too large may crash the process; otherwise names alone tell (heuristic).
_TOLD, _NAMED, _SYMMETRIC = -0.5, 0.3, 0.2


@dataclass(frozen=True)
class _Parts:
    """The parameters that the parts of one matrix are given by."""

    values: str
    rows: str
    columns: str


def plans_of_sparse_parts(op: Op, first: Plan) -> Iterator[Plan]:
    """Plans in which values, rows and columns make a square matrix: a triangle, then one that is
    symmetric and positive definite.

    Args:
        op: the operator.
        first: the likeliest plan, of which all else stays.
    """
    parts = _parts(first)
    if parts is None:
        return
    cost = _TOLD if _makes_sparse(op) else _NAMED
    plan = _of_its_size(first, parts)
    axis = f"={len(_TRIANGLE)}"
    guess = first.guess(parts.values)
    grad = not isinstance(guess, TensorGuess) or guess.grad
    triangle = _placed(plan, parts, _TRIANGLE)
    yield replace(
        triangle.changed(parts.values, TensorGuess((axis,), grad=grad)), cost=first.cost + cost
    )
    diagonal = tuple((k, k) for k in range(_SIZE))
    below = tuple((column, row) for row, column in _ABOVE)
    values = torch.tensor(
        [_SIZE + k for k in range(_SIZE)] + [1 + k / 4 for k in range(len(_ABOVE))] * 2,
        dtype=torch.float64,
    )
    symmetric = _placed(plan, parts, diagonal + _ABOVE + below)
    held = ValueGuess(values.requires_grad_(grad), "tensor")
    yield replace(symmetric.changed(parts.values, held), cost=first.cost + cost + _SYMMETRIC)


def _parts(plan: Plan) -> _Parts | None:
    """The parts of the only matrix among the parameters."""
    found = [
        [name for name in plan.names if _names.matches(patterns, name)]
        for patterns in (_VALUES, _ROWS, _COLUMNS)
    ]
    if any(len(names) != 1 for names in found):
        return None
    (values,), (rows,), (columns,) = found
    tensors = all(isinstance(plan.guess(name), TensorGuess) for name in (rows, columns))
    return _Parts(values, rows, columns) if tensors and len({values, rows, columns}) == 3 else None


def _makes_sparse(op: Op) -> bool:
    """Whether forward makes a sparse matrix itself."""
    forward = op.function.forward if op.function is not None else op.call
    function = plain_function(forward)
    tree = syntax(function) if function is not None else None
    return tree is not None and any(
        isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in _MAKERS
        for node in ast.walk(tree)
    )


def _of_its_size(plan: Plan, parts: _Parts) -> Plan:
    """``plan`` with the shape of the matrix, and other tensors that it can be multiplied with."""
    for name in plan.names:
        guess: Guess = plan.guess(name)
        if name in (parts.values, parts.rows, parts.columns) or isinstance(guess, GroupGuess):
            continue
        number = isinstance(guess, ValueGuess) and type(guess.value) in (int, float)
        if _names.matches(_SHAPES, name):
            plan = plan.changed(name, ValueGuess((_SIZE, _SIZE), "shape"))
        elif _names.matches(_NUMBERS, name) and number:
            plan = plan.changed(name, ValueGuess(_SIZE, "int"))
        elif isinstance(guess, TensorGuess) and guess.dtype == "float":
            plan = plan.changed(name, replace(guess, axes=(f"={_SIZE}",)))
    return plan


def _placed(plan: Plan, parts: _Parts, places: tuple[tuple[int, int], ...]) -> Plan:
    for name, position in ((parts.rows, 0), (parts.columns, 1)):
        indices = torch.tensor([place[position] for place in places])
        plan = plan.changed(name, ValueGuess(indices, "tensor"))
    return plan
