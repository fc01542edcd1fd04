"""Second derivatives are symmetric, and never judged without the first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from gradlint.experiments.order.second_order import asymmetry, differentiate_twice
from gradlint.model.rule import Outcome
from gradlint.rules.order.wrong_second_derivative import RULE

X = torch.tensor([0.7, -1.3, 2.1])
Y = torch.tensor([1.4, 0.6, -0.9])


def product(factor: float) -> type:
    """x·y² whose mixed partial ∂²/∂y∂x, by double backward, is off by ``factor``."""

    class Partial(torch.autograd.Function):
        @staticmethod
        def forward(ctx, g, x, y):
            ctx.save_for_backward(g, x, y)
            return g * 2 * x * y

        @staticmethod
        def backward(ctx, h):
            g, x, y = ctx.saved_tensors
            return h * 2 * x * y, factor * h * 2 * g * y, h * 2 * g * x

    class Op(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y**2

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y**2, Partial.apply(g, x, y)

    return Op


def test_a_mixed_partial_that_differs_is_seen(subject: Callable[..., Any]) -> None:
    bound = subject(product(1.1), X, Y)
    found = asymmetry(bound, bound.once(differentiate_twice))
    assert found is not None
    assert (found.first, found.second) == (0, 1)
    # ∂²/∂x∂y is off, ∂²/∂y∂x is right.
    assert found.other / found.one == pytest.approx(1.1, rel=1e-9)


@pytest.mark.parametrize(
    "op",
    [
        product(1.0),
        lambda x, y: (x * y).logsumexp(0),
        lambda x, y: torch.linalg.norm(x - y),
        lambda x, y: x * y / y,  # second derivatives are rounding alone
        lambda x, y: torch.outer(x, y).softmax(-1),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_symmetric_ones_pass(op: Any, dtype: torch.dtype, subject: Callable[..., Any]) -> None:
    bound = subject(op, X, Y, dtype=dtype)
    assert asymmetry(bound, bound.once(differentiate_twice)) is None


def test_complex_ones_pass(subject: Callable[..., Any]) -> None:
    z = torch.randn(4, dtype=torch.complex128, generator=torch.Generator().manual_seed(0))
    bound = subject(lambda z: (z * z.abs()).exp(), z)
    assert asymmetry(bound, bound.once(differentiate_twice)) is None


class WrongFirst(torch.autograd.Function):
    """A wrong gradient that is differentiated rightly."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x**2


def test_nothing_is_claimed_where_the_first_order_is_wrong(
    probed: Callable[..., Outcome],
) -> None:
    outcome = probed(RULE, WrongFirst, X)
    assert outcome.verdict == "skipped"
    assert outcome.note == (
        "double backward is the derivative of backward, but the first-order gradient is wrong: "
        "see GL401"
    )


class OfNoFunction(torch.autograd.Function):
    """A field that is the gradient of no function, differentiated rightly."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y**2

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y**2, g * 3 * x * y


def test_what_no_function_has_as_its_gradient_is_found(subject: Callable[..., Any]) -> None:
    bound = subject(OfNoFunction, X, Y)
    # As if the first order could not be told, which is where symmetry has something to add.
    bound.first_order.verdicts = ["unsure", "unsure"]
    assert RULE.probe is not None
    outcome = RULE.probe(bound)
    assert outcome.verdict == "fail"
    (finding,) = outcome.findings
    assert finding.cause == "asymmetric"
    assert finding.message == "second derivatives with respect to `x` and `y` are not symmetric"
    one, other = finding.evidence["slopes"]
    assert other / one == pytest.approx(1.5, rel=1e-9)
