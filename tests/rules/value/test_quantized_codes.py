"""Quantizers with a codebook: straight through to the vectors, a loss that is split."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import Function

from gradlint.checking.severity import as_loud_as_evidence
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code


class Quantized(Function):
    """The nearest code, straight through, and the loss of both.

    |sg(z) - e|^2 + beta |z - sg(e)|^2, as means.
    """

    @staticmethod
    def forward(ctx: Any, z: Tensor, codebook: Tensor, beta: float) -> tuple[Tensor, Tensor]:
        index = torch.cdist(z, codebook).argmin(1)
        away = z - codebook[index]
        ctx.save_for_backward(away, index)
        ctx.beta, ctx.shape = beta, codebook.shape
        return codebook[index], (1 + beta) * away.square().mean()

    @staticmethod
    def backward(ctx: Any, g: Tensor, g_loss: Tensor) -> Any:
        away, index = ctx.saved_tensors
        pull = 2 * g_loss * away / away.numel()
        to_codes = pull.new_zeros(ctx.shape).index_add(0, index, -pull)
        return g + ctx.beta * pull, to_codes, None


class OfTheLastOnly(Quantized):
    """One of the vectors that share a code is left."""

    @staticmethod
    def backward(ctx: Any, g: Tensor, g_loss: Tensor) -> Any:
        away, index = ctx.saved_tensors
        pull = 2 * g_loss * away / away.numel()
        to_codes = pull.new_zeros(ctx.shape)
        to_codes[index] = -pull
        return g + ctx.beta * pull, to_codes, None


class BetaTwice(Quantized):
    @staticmethod
    def backward(ctx: Any, g: Tensor, g_loss: Tensor) -> Any:
        to_z, to_codes, _ = Quantized.backward(ctx, g, g_loss)
        return to_z, ctx.beta * to_codes, None


class WithoutTheLoss(Quantized):
    @staticmethod
    def backward(ctx: Any, g: Tensor, g_loss: Tensor) -> Any:
        return g, Quantized.backward(ctx, g, g_loss)[1], None


class ToTheCodes(Quantized):
    """The gradient of the codes is handed to z, and to the codebook as well."""

    @staticmethod
    def backward(ctx: Any, g: Tensor, g_loss: Tensor) -> Any:
        to_z, to_codes, _ = Quantized.backward(ctx, g, g_loss)
        return to_z, to_codes.index_add(0, ctx.saved_tensors[1], g), None


class Unsaid(Quantized):
    """The nearest code and the loss of both."""


def drawn(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.codebook = nn.Parameter(drawn(5, 4, seed=1))

    def forward(self, z: Tensor) -> Any:
        return Quantized.apply(z, self.codebook, 0.25)


class LayerOfTheLastOnly(Layer):
    def forward(self, z: Tensor) -> Any:
        return OfTheLastOnly.apply(z, self.codebook, 0.25)


@pytest.mark.parametrize(
    ("op", "loud"),
    [
        (Quantized, "info"),
        (OfTheLastOnly, "error"),
        (BetaTwice, "error"),
        (WithoutTheLoss, "error"),
        (ToTheCodes, "error"),
        (Unsaid, "error"),
        (Layer(), "info"),
        (LayerOfTheLastOnly(), "error"),
    ],
)
def test_codes(probed: Callable[..., Outcome], op: Any, loud: str) -> None:
    rule = by_code("GL401")
    assert rule is not None
    codes = () if isinstance(op, nn.Module) else (drawn(5, 4, seed=1), 0.25)
    found = as_loud_as_evidence(probed(rule, op, drawn(3, 4), *codes)).findings
    assert {item.severity for item in found} == {loud}
    assert {item.grounds.explained for item in found} == {"surrogate" if loud == "info" else None}
