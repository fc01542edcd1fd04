"""GL706 only warns about a gradient that may be part of a surrogate."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

from gradlint.api import check

#: Rows that backward sums at once; it leaves the others out.
BLOCK = 4


class Levels(Function):
    """Rounds to multiples of ``step``: the derivative by ``x`` is zero."""

    @staticmethod
    def forward(ctx, x, step):
        levels = torch.round(x / step)
        ctx.save_for_backward(levels)
        return levels * step

    @staticmethod
    def backward(ctx, grad):
        (levels,) = ctx.saved_tensors
        whole = len(levels) // BLOCK * BLOCK
        return grad, (grad * levels)[:whole].sum()


class Scaled(Function):
    """The same fault in a smooth function."""

    @staticmethod
    def forward(ctx, x, step):
        ctx.save_for_backward(x, step)
        return x * step

    @staticmethod
    def backward(ctx, grad):
        x, step = ctx.saved_tensors
        whole = len(x) // BLOCK * BLOCK
        return grad * step, (grad * x)[:whole].sum()


@pytest.mark.parametrize(("function", "severity"), [(Levels, "warning"), (Scaled, "error")])
def test_beside_steps_other_gradients_may_be_a_surrogate(function, severity):
    inputs = (torch.randn(BLOCK, 3, dtype=torch.float64), torch.tensor(0.4, dtype=torch.float64))
    report = check(function, [inputs], select=["GL401", "GL706"], seed=1)
    found = {(item.code, item.input): item.severity for item in report.findings}
    assert found["GL706", "step"] == severity
