"""Further samples beyond what an operator is meant for: diverging steps, axes from behind."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function

import gradlint


class Reversed(Function):
    """Leapfrog steps of q'' = -force·q³, of which backward runs the inverse: where they
    are too long, q grows beyond bounds, and the digits are lost that backward needs."""

    share = 1.0

    @staticmethod
    def forward(
        ctx: Any, q: torch.Tensor, p: torch.Tensor, dt: float, steps: int, force: float = 1.0
    ) -> tuple[torch.Tensor, torch.Tensor]:
        for _ in range(steps):
            p = p - dt * force * q**3
            q = q + dt * p
        ctx.save_for_backward(q, p)
        ctx.of = dt, steps, force
        return q, p

    @classmethod
    def backward(cls, ctx: Any, gq: torch.Tensor, gp: torch.Tensor) -> Any:  # type: ignore[override]
        q, p = ctx.saved_tensors
        dt, steps, force = ctx.of
        for _ in range(steps):
            gp = gp + dt * gq
            q = q - dt * p
            gq = gq - dt * force * 3 * q**2 * gp
            p = p + dt * force * q**3
        return (gq if force == 1.0 else cls.share * gq), gp, None, None, None


class ReversedWrong(Reversed):
    """Wrong where the force is another one."""

    share = 0.5


def found(op: type, *sample: Any) -> list[tuple[str, str]]:
    report = gradlint.check(op, sample, select=["GL1", "GL2", "GL401"], seed=0)
    return [(item.code, item.severity) for item in report.findings if item.severity != "info"]


def points(scale: float) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    q, p = (scale * torch.randn(3, dtype=torch.float64, generator=draw) for _ in range(2))
    return q.requires_grad_(), p.requires_grad_()


def test_steps_that_gradlint_made_too_long_are_no_fault_of_backward() -> None:
    assert found(Reversed, *points(4.0), 0.1, 4) == []
    assert found(ReversedWrong, *points(4.0), 0.1, 4) == [("GL401", "error")]
    # Steps that somebody gave are meant.
    assert ("GL401", "error") in found(Reversed, *points(4.0), 0.325, 4)


class Normalized(Function):
    """v times g by its length along all axes but one, which is counted from the front: −1 is none,
    so that the length is that of all axes, and g broadcasts."""

    @staticmethod
    def forward(ctx: Any, v: torch.Tensor, g: torch.Tensor, dim: int = 0) -> torch.Tensor:
        ctx.dims = [k for k in range(v.dim()) if k != dim]
        ctx.save_for_backward(v, g)
        return v * (g / v.square().sum(ctx.dims, keepdim=True).sqrt())

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        v, g = ctx.saved_tensors
        length = v.square().sum(ctx.dims, keepdim=True).sqrt()
        dot = (grad * v).sum(ctx.dims, keepdim=True)
        return g / length * (grad - v * dot / length**2), dot / length, None


class NormalizedWrong(Normalized):
    """An axis that is counted from behind is one in forward, and none in backward."""

    @staticmethod
    def forward(ctx: Any, v: torch.Tensor, g: torch.Tensor, dim: int = 0) -> torch.Tensor:
        Normalized.forward(ctx, v, g, dim)
        dims = [k for k in range(v.dim()) if k != dim % v.dim()]
        return v * (g / v.square().sum(dims, keepdim=True).sqrt())


def test_an_axis_from_behind_that_forward_does_not_know() -> None:
    draw = torch.Generator().manual_seed(0)
    v, g = (torch.randn(3, n, dtype=torch.float64, generator=draw) for n in (4, 1))
    sample = v.requires_grad_(), g.requires_grad_()
    assert found(Normalized, *sample) == []
    assert found(NormalizedWrong, *sample) != []
