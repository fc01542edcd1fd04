"""VJPs under checkpointing, its stand-in, and saved-tensor hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from gradlint.inputs import Sample
from gradlint.targets._build import from_object
from gradlint.trace._problem import OpRaised, Problem
from gradlint.trace._record import draw_cotangents
from gradlint.trace._saving import pull_checkpointed, pull_packed, pull_recomputed

PULLS = (pull_checkpointed, pull_recomputed, pull_packed)
X = torch.tensor([0.5, -1.5, 2.5], dtype=torch.float64, requires_grad=True)


def bound(op: Any) -> tuple[Problem, dict[str, torch.Tensor]]:
    """``op`` at :data:`X`, with cotangents for its outputs."""
    problem = Problem(from_object(op), Sample("s", "test", (X,)), seed=0)
    outputs = [item for item in problem.linearize()[1] if item.differentiable]
    return problem, draw_cotangents(outputs, 0)


@pytest.mark.parametrize("pull", PULLS)
@pytest.mark.parametrize(
    "op",
    [
        lambda x: x.sin().exp(),
        lambda x: (x.sin(), x.argmax(), x.square()),
        lambda x: torch.nn.functional.dropout(x, 0.5),
        lambda x: x.mul_(3).tanh(),
        torch.nn.Linear(3, 2),
    ],
)
def test_right_ops_have_their_usual_gradient(pull: Callable[..., Any], op: Any) -> None:
    problem, cotangents = bound(op)
    for found, expected in zip(pull(problem, cotangents), problem.pull(cotangents), strict=True):
        torch.testing.assert_close(found, expected, rtol=0.0, atol=0.0)


class Unpacks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    def backward(ctx, grad):
        return (ctx.saved_tensors[0] + ctx.saved_tensors[0]) * grad


class Alternates(torch.autograd.Function):
    calls = 0

    @staticmethod
    def forward(ctx, x):
        Alternates.calls += 1
        ctx.save_for_backward(x if Alternates.calls % 2 else x[:1])
        return x.sin()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.cos()


@pytest.mark.parametrize("op", [Unpacks, Alternates])
def test_the_stand_in_refuses_what_checkpointing_refuses(op: Any) -> None:
    problem, cotangents = bound(op)
    for pull in (pull_checkpointed, pull_recomputed):
        with pytest.raises(OpRaised, match="backward raised"):
            pull(problem, cotangents)


def test_random_numbers_of_forward_come_back() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    problem, cotangents = bound(lambda x: x * torch.rand(3, dtype=x.dtype))
    expected = problem.pull(cotangents)[0]
    torch.testing.assert_close(pull_recomputed(problem, cotangents)[0], expected)
    assert before.shape == torch.get_rng_state().shape
