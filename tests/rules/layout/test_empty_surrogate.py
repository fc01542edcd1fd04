"""GL705 says little of a gradient that ignores the outputs, or of NaN that forward makes itself."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import Function

from gradlint.api import check


class AuxiliaryLoss(Function):
    """Passes ``output`` through; the gradient of ``loss`` is one, whatever comes back."""

    @staticmethod
    def forward(ctx, output, loss):
        ctx.save_for_backward(loss)
        return output

    @staticmethod
    def backward(ctx, grad):
        (loss,) = ctx.saved_tensors
        return grad, torch.ones_like(loss)


class MeanOverRows(Function):
    """Divides by the number of rows: 0/0 where there are none."""

    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, grad):
        x, scale = ctx.saved_tensors
        return grad * scale, (grad * x).mean(0) * x.shape[0]


def found(function: type[Function]) -> dict[str, str]:
    inputs = (torch.randn(3, 4), torch.randn(4))
    report = check(function, [inputs], select=["GL401", "GL705"], seed=1)
    return {item.code: item.severity for item in report.findings}


def test_an_auxiliary_loss_is_told_of_once():
    assert found(AuxiliaryLoss) == {"GL401": "warning"}


def test_garbage_for_an_empty_batch_is_still_found():
    assert found(MeanOverRows)["GL705"] == "warning"


class MeanGate(Function):
    """Gates channels by the mean of each, which is NaN where there is nothing."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, w)
        return x * (x.mean(-1) * w).sigmoid()[:, None]

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        x, w = ctx.saved_tensors
        mean = x.mean(-1)
        gate = (mean * w).sigmoid()
        inner = (grad * x).sum(-1) * gate * (1 - gate)
        return grad * gate[:, None] + (inner * w / x.shape[-1])[:, None], inner * mean


class Divides(Function):
    """Forward is finite where nothing is there, and backward is not."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, w)
        return x * w[:, None]

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        x, w = ctx.saved_tensors
        return grad * w[:, None], (grad * x).mean(-1) * x.shape[-1]


class Lengths(Function):
    """Rows as long as w says: the length of nothing is zero, and forward divides by it."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, w)
        return x * (w / x.norm(dim=-1))[:, None]

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        x, w = ctx.saved_tensors
        length = x.norm(dim=-1, keepdim=True)
        dot = (grad * x).sum(-1, keepdim=True)
        inner = grad - x * dot / length**2
        return w[:, None] / length * inner, (dot / length)[:, 0]


@pytest.mark.parametrize(
    ("op", "severity"), [(MeanGate, "info"), (Lengths, "info"), (Divides, "warning")]
)
def test_nan_that_forward_makes_itself_is_information(op: type, severity: str) -> None:
    x = torch.linspace(-1.0, 2.0, 12, dtype=torch.float64).reshape(3, 4).requires_grad_()
    w = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    report = check(op, inputs=(x, w), select=["GL705"], seed=0)
    found = [(f.severity, f.input) for target in report.targets for f in target.findings]
    assert found == [(severity, "w")]
