"""A module that replaces a function on import, which gradlint calls."""

from __future__ import annotations

import torch

torch.randn = None  # type: ignore[assignment]


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2
