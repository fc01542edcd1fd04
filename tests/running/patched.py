"""What a library does on import: it wraps functions of torch, rightly."""

from __future__ import annotations

import torch

_randn = torch.randn


def randn(*args, **kwargs):
    return _randn(*args, **kwargs)


torch.randn = randn


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2
