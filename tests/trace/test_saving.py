"""VJPs under checkpointing, its stand-in, and saved-tensor hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from gradlint.experiments.state.saved_otherwise import (
    _copied,
    pull_checkpointed,
    pull_packed,
    pull_recomputed,
)
from gradlint.model.sample import Sample
from gradlint.targets.build import from_object
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem
from gradlint.trace.record import draw_cotangents

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


@pytest.mark.parametrize(
    "saved",
    [
        torch.arange(24.0).view(2, 3, 4).permute(2, 0, 1),
        torch.arange(3.0).expand(5, 3),
        torch.tensor([True, False, True])[::2],
        torch.randn(4, dtype=torch.complex128).conj(),
        torch.tensor(2.5),
        torch.empty(0, 3),
        torch.eye(3).to_sparse(),
    ],
)
def test_a_copy_lies_elsewhere_and_is_the_same(saved: torch.Tensor) -> None:
    copy = _copied(saved)
    assert (copy.shape, copy.dtype, copy.layout) == (saved.shape, saved.dtype, saved.layout)
    assert torch.equal(copy.to_dense(), saved.to_dense())
    if saved.layout == torch.strided:
        assert copy.stride() == torch.empty_like(saved).stride()
        assert copy.storage_offset() == 0
        assert copy.untyped_storage().nbytes() == copy.numel() * copy.element_size()


def test_copies_hardly_ever_lie_where_earlier_ones_did() -> None:
    value = torch.arange(8.0)
    assert len({_copied(value).data_ptr() for _ in range(50)}) > 40
