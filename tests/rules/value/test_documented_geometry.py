"""Natural gradients, relevance and substitutes, which are no derivatives: warnings where
documentation speaks of them. Near them: the same gradient of an op that says nothing, or that says
what it is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

from gradlint.checking.severity import as_loud_as_evidence
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code


class Silent(Function):
    """The mean of a unit Gaussian by its logits."""

    @staticmethod
    def forward(ctx, logits):
        p = torch.softmax(logits, -1)
        ctx.save_for_backward(p)
        return p.square().sum(-1)

    @staticmethod
    def backward(ctx, grad_output):
        (p,) = ctx.saved_tensors
        return 2.0 * grad_output[..., None] * (p - p.square().sum(-1, keepdim=True))


class Documented(Silent):
    """The natural gradient with respect to the logits."""


class Derived(Documented):
    """Says nothing by itself."""


class Calling(Silent):
    """Leaves it to another Function."""

    @staticmethod
    def backward(ctx, grad_output):
        return Documented.backward(ctx, grad_output)


class InItsMethod(Silent):
    """Says it in backward."""

    @staticmethod
    def backward(ctx, grad_output):
        "Calculates the natural gradient with respect to logits."
        return Silent.backward(ctx, grad_output)


class Denied(Silent):
    """The gradient, not the natural gradient, with respect to the logits."""


class Relevance(Silent):
    """Layer-wise relevance propagation: distributes the relevance to the inputs."""


class RelevanceOfWords(Silent):
    """Squares of the relevance of documents, by their logits. No relevance propagation."""


class Natural(Silent):
    """Gradients by the natural logarithm of the probabilities."""


class Substitute(Silent):
    """The derivative is zero almost everywhere."""

    @staticmethod
    def backward(ctx, grad_output):
        scale = 1.0
        """The step is of no use: apply a sign estimator by substituting the gradient."""
        return scale * Silent.backward(ctx, grad_output)


class NoSubstitute(Silent):
    """This is not an approximate gradient; the approximation is that of the sum."""


class Clipped(Silent):
    """The sum of squares, with a gradient clipped at 10."""


class ClippedNorm(Silent):
    """The sum of squares of a clipped gradient norm."""


class Applied(Silent):
    """Says nothing; what applies it does."""


def bounded(logits: Tensor) -> Tensor:
    """As the sum of squares, but avoids large gradients at ties by clamping them."""
    return Applied.apply(logits)


class AppliedWithAnother(Silent):
    """One of two that are applied together."""


class Another(Silent):
    """The other one."""


def both(logits: Tensor) -> Tensor:
    """Avoids large gradients at ties by clamping them, in one of the two."""
    return AppliedWithAnother.apply(logits) + Another.apply(logits)


class AppliedInSilence(Silent):
    """Says nothing, and what applies it speaks of values."""


def of_values(logits: Tensor) -> Tensor:
    """The sum of squares, whose values are bounded by clamping them."""
    return AppliedInSilence.apply(logits)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (Applied, "warning"),
        (AppliedWithAnother, "error"),
        (AppliedInSilence, "error"),
        (Clipped, "warning"),
        (ClippedNorm, "error"),
        (Silent, "error"),
        (Documented, "warning"),
        (Derived, "warning"),
        (Calling, "warning"),
        (InItsMethod, "warning"),
        (Denied, "error"),
        (Relevance, "warning"),
        (RelevanceOfWords, "error"),
        (Natural, "error"),
        (Substitute, "warning"),
        (NoSubstitute, "error"),
    ],
)
def test_severity(probed: Callable[..., Outcome], op: type[Function], expected: str) -> None:
    x: Tensor = torch.tensor([[0.3, -0.7, 1.1], [0.2, 0.9, -0.4]], dtype=torch.float64)
    (finding,) = as_loud_as_evidence(probed(by_code("GL401"), op, x.requires_grad_())).findings
    assert finding.severity == expected
    words = ("natural or Riemannian", "hands back relevance", "another gradient is put")
    said = any(text in finding.help for text in words)
    assert said == (expected == "warning")
