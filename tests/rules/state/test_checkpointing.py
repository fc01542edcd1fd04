"""GL609: what backward needs, saved in another way."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import Function

from gradlint.model.rule import Outcome
from gradlint.rules.state.breaks_under_checkpointing import RULE
from gradlint.spec._formula import Program, plain_callable
from gradlint.spec.load import loads

Probed = Callable[..., Outcome]

X = torch.tensor([0.7, -1.3, 2.1, 0.4, 1.7, -0.3, 0.9, -2.0])
ADDRESSES: dict[int, torch.Tensor] = {}
REMEMBERED: dict[int, torch.Tensor] = {}


class Right(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


class UnpacksTwice(Right):
    @staticmethod
    def backward(ctx, grad):
        return (ctx.saved_tensors[0] + ctx.saved_tensors[0]) * grad


class ByAddress(Function):
    @staticmethod
    def forward(ctx, x):
        ADDRESSES[x.data_ptr()] = x.detach()  # held: nothing else gets this address
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * ADDRESSES[x.data_ptr()] * grad


class Remembered(Function):
    """Keyed by address, and nothing is held: what comes to lie there later finds what was."""

    @staticmethod
    def forward(ctx, x):
        REMEMBERED[x.data_ptr()] = X
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * REMEMBERED[x.data_ptr()] * grad


class Writes(Function):
    """Recomputing starts from what forward made of its input."""

    @staticmethod
    def forward(ctx, x):
        x.data.mul_(2)
        ctx.save_for_backward(x.detach().clone())
        return x.square()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 4 * x * grad


def masked(draw: Callable[[], float]) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: x * torch.tensor([draw() > 0.5 for _ in x])


def test_unpacking_twice(probed: Probed) -> None:
    (finding,) = probed(RULE, UnpacksTwice, X).findings
    assert finding.message.startswith("backward raises under torch.utils.checkpoint: Checkpoint")
    assert finding.severity == "error"


def test_memory_of_saved_tensors(probed: Probed) -> None:
    (finding,) = probed(RULE, ByAddress, X).findings
    assert finding.message.startswith("backward raises under saved-tensor hooks: KeyError")


def test_memory_of_saved_tensors_where_earlier_calls_used_it(probed: Probed) -> None:
    earlier = [X.clone() for _ in range(1000)]
    REMEMBERED.update((x.data_ptr(), X) for x in earlier)
    del earlier
    (finding,) = probed(RULE, Remembered, X).findings
    assert finding.message.startswith("backward raises under saved-tensor hooks: KeyError")


def test_input_that_is_written_to(probed: Probed) -> None:
    (finding,) = probed(RULE, Writes, X).findings
    assert finding.message == "the gradient for `x` changes under torch.utils.checkpoint"


def test_generators_that_checkpointing_does_not_bring_back(probed: Probed) -> None:
    (finding,) = probed(RULE, masked(random.random), X).findings
    assert finding.severity == "warning"
    assert "torch's own generators" in finding.help
    assert probed(RULE, masked(lambda: float(torch.rand(()))), X).verdict == "pass"


def test_hooks_that_pytorch_refuses_are_no_fault(probed: Probed) -> None:
    outcome = probed(RULE, torch.func.grad(lambda x: x.sin().sum()), X)
    assert outcome.findings == []
    assert outcome.verdict == "skipped"


@pytest.mark.parametrize(
    "op",
    [
        Right,
        torch.nn.Sequential(torch.nn.Linear(8, 3), torch.nn.Tanh()),
        torch.nn.Dropout(0.5),
        lambda x: x.mul_(2),
        lambda x: (x.sin(), x > 0, {"square": x.square()}),
        lambda x: x.sum(),
    ],
)
def test_right_ops_pass(probed: Probed, op: Any) -> None:
    outcome = probed(RULE, op, X)
    assert [f.message for f in outcome.findings] == []
    assert outcome.verdict == "pass"


@pytest.mark.parametrize(
    "formula",
    [
        *("x * x", "sin(x)", "exp(x) / 3", "relu(x)", "x.sum()", "softmax(x, -1)"),
        *("x[:, None] @ x[None]", "(x * x).mean(-1)", "tanh(x) * sigmoid(x)"),
        *("where(x > 0, x, 0.1 * x)", "log(abs(x) + 1)", "(sin(x), x.exp().sum(0))"),
    ],
)
def test_formulas_that_autograd_differentiates_pass(probed: Probed, formula: str) -> None:
    program = Program(loads(f'forward: "{formula}"\ninputs: {{x: {{shape: [8]}}}}\n'))
    outcome = probed(RULE, plain_callable(program, "formula"), X)
    assert [f.message for f in outcome.findings] == []
    assert outcome.verdict == "pass"
