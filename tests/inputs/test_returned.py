"""Shapes of gradients before the engine sums them."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

from gradlint.inputs._returned import returned_shapes


class Added(Function):
    @staticmethod
    def forward(ctx, x, k, y):
        return x + y

    @staticmethod
    def backward(ctx, grad):
        return grad, None, grad


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (((3, 4), (3, 4)), {}),
        (((3, 4), (4,)), {1: (3, 4)}),
        (((3, 1), (1, 4)), {0: (3, 4), 1: (3, 4)}),
    ],
)
def test_what_backward_returned(shapes, expected):
    leaves = [torch.ones(shape, requires_grad=True) for shape in shapes]
    out = Added.apply(leaves[0], 2, leaves[1])
    with returned_shapes([out], leaves) as found:
        gradients = torch.autograd.grad(out, leaves, torch.ones_like(out))
    assert found == expected
    assert [g.shape for g in gradients] == [leaf.shape for leaf in leaves]
    assert "apply" not in vars(type(out.grad_fn))


@pytest.mark.parametrize(("backward", "expected"), [(lambda g: g, set()), (lambda g: g.real, {0})])
def test_real_gradients_of_complex_inputs_are_told(backward, expected):
    class Sum(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, grad):
            return backward(grad), grad.real  # y is real

    x = torch.ones(3, dtype=torch.complex128, requires_grad=True)
    y = torch.ones(3, dtype=torch.float64, requires_grad=True)
    real = set()
    with returned_shapes([out := Sum.apply(x, y)], [x, y], real):
        torch.autograd.grad(out, [x, y], torch.ones_like(out))
    assert real == expected


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [(((4,), (4,)), set()), (((3, 4), (4,)), {(3, 4)}), (((3, 1), (3, 4)), set())],
)
def test_more_axes_than_what_was_computed_has(shapes, expected):
    x, y = (torch.ones(shape, requires_grad=True) for shape in shapes)
    out, inside = Added.apply(x, 2, y.exp()), set()
    with returned_shapes([out], [x, y], inside=inside):
        torch.autograd.grad(out, [x, y], torch.ones_like(out))
    assert inside == expected
