"""Operators that replace what gradlint itself calls: the fault is theirs."""

from __future__ import annotations

import sys

import torch


class _Double(torch.autograd.Function):
    """y = 2 x, right; the ops below meddle beside it."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2

    @staticmethod
    def sample_inputs():
        return (torch.linspace(0.5, 2.0, 3, dtype=torch.float64, requires_grad=True),)


def _leave_no_module():
    for name in list(sys.modules):
        if name.partition(".")[0] == "gradlint":
            del sys.modules[name]


class NoModulesForward(_Double):
    @staticmethod
    def forward(ctx, x):
        _leave_no_module()
        return x * 2


class NoModulesBackward(_Double):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        _leave_no_module()
        return grad_output * 2


class NoRandn(_Double):
    @staticmethod
    def forward(ctx, x):
        torch.randn = None
        return x * 2


class OtherSoftmax(_Double):
    """What gradlint does not call: it can go on, and tells of it."""

    @staticmethod
    def forward(ctx, x):
        torch.softmax = torch.log_softmax
        return x * 2


class EndlessText(_Double):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        raise ValueError("x" * 50_000_000)
