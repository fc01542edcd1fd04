"""Gradients that are right for what an orthonormal basis spans: warnings. Near them: a factor that
is wrong for that, too, the same gradient beside outputs that are no basis, and right ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

from gradlint.checking.severity import as_loud_as_evidence
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code


def leading(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """All right singular vectors of x, those of the two largest singular values, those of the
    others, and the eigenvalues of xᵀx."""
    _, s, vh = torch.linalg.svd(x, full_matrices=False)
    v = vh.mT
    return v, v[..., :2], v[..., 2:], s * s


class Spanned(Function):
    """The two leading right singular vectors, and how they move out of what they span."""

    scale = 1.0

    @staticmethod
    def forward(ctx, x):
        _, inside, _, _ = leading(x)
        ctx.save_for_backward(x)
        return inside.contiguous()

    @classmethod
    def out_of_span(cls, x: Tensor, g: Tensor) -> Tensor:
        _, inside, outside, lam = leading(x)
        gap = lam[..., None, :2] - lam[..., 2:, None]
        m = outside @ ((outside.mT @ g) / gap) @ inside.mT
        return cls.scale * x @ (m + m.mT)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return Spanned.out_of_span(x, g)


class Doubled(Spanned):
    @staticmethod
    def backward(ctx, g):
        return 2.0 * Spanned.backward(ctx, g)


class Weighed(Spanned):
    """No basis any more: the second column is longer."""

    @staticmethod
    def forward(ctx, x):
        return Spanned.forward(ctx, x) * torch.tensor([1.0, 2.0], dtype=x.dtype)

    @staticmethod
    def backward(ctx, g):
        return Spanned.backward(ctx, g * torch.tensor([1.0, 2.0], dtype=g.dtype))


class Whole(Spanned):
    """As it is: vectors turn among themselves, too."""

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.func.vjp(lambda value: leading(value)[1], x)[1](g)[0]


@pytest.mark.parametrize(
    ("op", "expected"),
    [(Spanned, ["warning"]), (Doubled, ["error"]), (Weighed, ["error"]), (Whole, [])],
)
def test_severity(probed: Callable[..., Outcome], op: type[Function], expected: list[str]) -> None:
    generator = torch.Generator().manual_seed(4)
    x = torch.randn(5, 4, dtype=torch.float64, generator=generator)
    outcome = as_loud_as_evidence(probed(by_code("GL401"), op, x.requires_grad_()))
    assert [finding.severity for finding in outcome.findings] == expected
    assert all(
        ("what the columns" in f.cause_text) == (f.severity == "warning") for f in outcome.findings
    )
