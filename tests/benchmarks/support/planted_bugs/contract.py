"""Bugs of the contract of backward: which inputs require grad (GL110)."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function

from tests.benchmarks.support.planted_bugs import Bug

_X = torch.tensor([[0.7, -1.3, 2.1], [-0.2, 1.6, -2.4]], dtype=torch.float64)


def _two() -> tuple[Any, ...]:
    return _X.clone().requires_grad_(), (_X.flip(0) * 0.8 + 0.1).requires_grad_()


def _three() -> tuple[Any, ...]:
    weight = torch.linspace(-1.0, 1.2, 12, dtype=torch.float64).view(3, 4)
    bias = torch.tensor([0.3, -0.4, 0.5, 0.1], dtype=torch.float64)
    return _X.clone().requires_grad_(), weight.requires_grad_(), bias.requires_grad_()


class Product(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_output * weight if ctx.needs_input_grad[0] else None
        grad_weight = grad_output * x if ctx.needs_input_grad[1] else None
        return grad_x, grad_weight


class SwappedFlags(Product):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_output * weight if ctx.needs_input_grad[1] else None
        grad_weight = grad_output * x if ctx.needs_input_grad[0] else None
        return grad_x, grad_weight


class OneFlagForBoth(Product):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        if not ctx.needs_input_grad[0]:
            return None, None
        return grad_output * weight, grad_output * x


class SavesIfNeeded(Product):
    """What is saved depends on the other input, and backward needs both."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(*([x, weight] if ctx.needs_input_grad[0] else [x]))
        return x * weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output * weight, grad_output * x


class WrongBranch(Product):
    """With a frozen weight a faster path is taken, which is another function's."""

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        if not ctx.needs_input_grad[1]:
            return grad_output * weight.abs(), None
        return grad_output * weight, grad_output * x


class Identical(Product):
    """Arguments are told apart by identity."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.same = x is weight
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output * weight, None if ctx.same else grad_output * x


class Affine(Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return x @ weight + bias

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight.mT, x.mT @ grad_output, grad_output.sum(0)


class BiasWithWeight(Affine):
    """The gradient of the bias is a by-product of that of the weight."""

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_output @ weight.mT
        if not ctx.needs_input_grad[1]:
            return grad_x, None, None
        return grad_x, x.mT @ grad_output, grad_output.sum(0)


def graph_by_first(x, weight, bias):
    """A helper that builds a graph for the data's gradient only."""
    if x.requires_grad:
        return Affine.apply(x, weight, bias)
    with torch.no_grad():
        return Affine.apply(x, weight, bias)


BUGS = [
    Bug("flags swapped", "GL110", SwappedFlags, Product, _two, "cornellius-gp/gpytorch#1322"),
    Bug("one flag for both", "GL110", OneFlagForBoth, Product, _two, "verl-project/verl#6913"),
    Bug("saves by one flag", "GL110", SavesIfNeeded, Product, _two, "linkedin/Liger-Kernel#1157"),
    Bug("another path if frozen", "GL110", WrongBranch, Product, _two, "pytorch/pytorch#188302"),
    Bug("told apart by identity", "GL110", Identical, Product, _two, "pytorch/pytorch#183604"),
    Bug("bias follows weight", "GL110", BiasWithWeight, Affine, _three, "class 8"),
    Bug("graph by the first input", "GL110", graph_by_first, Affine.apply, _three, "class 8"),
]
