"""Functions that solve linear systems, which an op takes as an argument."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

import gradlint
from gradlint.inputs.samples import samples_for
from gradlint.inputs.stand_ins import callables, is_stand_in, linear_solution, stand_in
from gradlint.model.settings import Settings
from gradlint.targets.build import from_object


class SolveBy(Function):
    """Its backward is right for what solves a system, and for no other function."""

    @staticmethod
    def forward(ctx, matrix, right, solve):
        x = solve(matrix, right)
        ctx.save_for_backward(matrix, x)
        ctx.solve = solve
        return x

    @staticmethod
    def backward(ctx, g):
        matrix, x = ctx.saved_tensors
        to_right = ctx.solve(matrix.mT, g)
        return -to_right @ x.mT, to_right, None


class SolveByWrongly(SolveBy):
    @staticmethod
    def backward(ctx, g):
        matrix, x = ctx.saved_tensors
        to_right = ctx.solve(matrix, g)
        return -to_right @ x.mT, to_right, None


@pytest.mark.parametrize(("op", "verdict"), [(SolveBy, "pass"), (SolveByWrongly, "fail")])
def test_a_solver_solves(op, verdict):
    assert samples_for(from_object(op), Settings())[0].args[2] is linear_solution
    (target,) = gradlint.check(op, order=1).targets
    assert target.verdict == verdict
    wrong = {item.code for item in target.findings if item.severity != "info"}
    assert wrong == (set() if verdict == "pass" else {"GL401"})


@pytest.mark.parametrize("layout", [torch.strided, torch.sparse_coo])
def test_solutions(layout):
    matrix = torch.tensor([[2.0, 1.0], [0.0, 4.0]])
    given = matrix if layout == torch.strided else matrix.to_sparse()
    assert torch.allclose(
        linear_solution(given, torch.tensor([4.0, 4.0])), torch.tensor([1.5, 1.0])
    )
    columns = linear_solution(given, torch.eye(2), 1e-3, maxiter=5)
    assert torch.allclose(columns, matrix.inverse())


def test_a_right_hand_side_alone_belongs_to_no_system():
    right = torch.tensor([4.0, 4.0])
    assert torch.equal(linear_solution(right), stand_in(right))


class SolvesInBackward(Function):
    """Its solver knows the matrix, and is called in backward alone."""

    @staticmethod
    def forward(ctx, x, solve_fn):
        ctx.solve = solve_fn
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g + 0 * ctx.solve(g), None


def test_a_solver_that_knows_its_matrix_is_as_any_function():
    assert gradlint.check(SolvesInBackward, order=1).targets[0].verdict == "pass"


def test_other_solvers_are_as_any_function():
    state, times = torch.tensor([[0.5, 1.0], [2.0, 3.0]]), torch.tensor([0.0, 1.0, 2.0])
    for first, second in ((torch.tanh, state), (state, times), (times, times)):
        with pytest.raises((TypeError, RuntimeError)):
            linear_solution(first, second)
    assert callables("solver") == [linear_solution, stand_in]
    assert callables("resolution")[0] is stand_in
    assert not is_stand_in(linear_solution)


class Relaxed(Function):
    """Its solver takes a function and a state."""

    @staticmethod
    def forward(ctx, x, solver):
        ctx.save_for_backward(x)
        return solver(torch.tanh, x).detach() * 0 + x.square()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g, None


def test_a_solver_of_something_else_is_stood_in_for():
    args = samples_for(from_object(Relaxed), Settings())[0].args
    assert args[1] is stand_in
    assert gradlint.check(Relaxed, order=1).targets[0].verdict == "pass"
