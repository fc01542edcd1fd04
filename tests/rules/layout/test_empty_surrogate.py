"""GL705 says nothing of a gradient that is known to ignore the outputs."""

from __future__ import annotations

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
