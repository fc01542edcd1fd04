"""Complex numbers are tried where the code is made for them, and not where it makes its own."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import gradlint

Function = torch.autograd.Function


class Transmitted(Function):
    """Intensity behind a layer of index n and thickness d."""

    @staticmethod
    def amplitude(n: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
        return (1 + n) * torch.exp(1j * n * d)

    @staticmethod
    def forward(ctx: Any, n: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(n, d)
        a = Transmitted.amplitude(n, d)
        return a.abs() ** 2

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> Any:
        n, d = ctx.saved_tensors
        a = Transmitted.amplitude(n, d)
        by_n = torch.exp(1j * n * d) + 1j * d * a
        return 2 * g * (a.conj() * by_n).real, 2 * g * (a.conj() * (1j * n * a)).real


class Squared(Function):
    """z times its conjugate, for real and complex z; wrong for complex ones."""

    @staticmethod
    def forward(ctx: Any, z: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(z)
        ctx.turned = 1j if z.is_complex() else 1.0
        return (z * z.conj()).real

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> Any:
        (z,) = ctx.saved_tensors
        return 2 * g * z * ctx.turned


@pytest.mark.parametrize(("op", "tried"), [(Transmitted, False), (Squared, True)])
def test_an_op_that_makes_complex_numbers_of_real_ones_is_given_no_others(
    op: type[Function], tried: bool
) -> None:
    (report,) = gradlint.check(op, seed=0, order=1, select=["GL0", "GL4"]).targets
    assert any(item.label == "with complex numbers" for item in report.tried) is tried
    assert any(f.severity != "info" for f in report.findings) is tried
