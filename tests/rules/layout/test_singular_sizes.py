"""Sizes at which the function has no derivative: no gradient of backward can be finite there."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd.function import once_differentiable

import gradlint
from gradlint.model.report import Finding

Function = torch.autograd.Function


class SpectralAngle(Function):
    """The angle between spectra over axis 1; of a single band it is 0 or π."""

    @staticmethod
    def forward(ctx: Any, pred: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(pred, target)
        norms = pred.norm(dim=1) * target.norm(dim=1)
        return torch.acos((pred * target).sum(1) / norms)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        pred, target = ctx.saved_tensors
        a, b = pred.norm(dim=1, keepdim=True), target.norm(dim=1, keepdim=True)
        cos = (pred * target).sum(1, keepdim=True) / (a * b)
        outer = -g.unsqueeze(1) / (1 - cos * cos).sqrt()
        return (
            outer * (target / (a * b) - cos * pred / a**2),
            outer * (pred / (a * b) - cos * target / b**2),
        )


class Distances(Function):
    """Lengths of the differences to the atom before, in a ring; a single atom has itself."""

    @staticmethod
    def forward(ctx: Any, pos: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(pos)
        return (pos - pos.roll(1, 0)).square().sum(1).sqrt()

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        (pos,) = ctx.saved_tensors
        d = pos - pos.roll(1, 0)
        part = g[:, None] * d / d.square().sum(1, keepdim=True).sqrt()
        return part - part.roll(-1, 0)


class Torsion(Function):
    """Torsion angles of rows of four atoms; where there is one atom, all of a row coincide."""

    @staticmethod
    def bonds(pos: torch.Tensor, quads: torch.Tensor) -> tuple[torch.Tensor, ...]:
        p = pos[quads]
        one, two, three = p[:, 1] - p[:, 0], p[:, 2] - p[:, 1], p[:, 3] - p[:, 2]
        return one, two, three, torch.linalg.cross(one, two), torch.linalg.cross(two, three)

    @staticmethod
    def forward(ctx: Any, pos: torch.Tensor, quads: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(pos, quads)
        one, two, _, m, n = Torsion.bonds(pos, quads)
        return torch.atan2((one * n).sum(1) * two.norm(dim=1), (m * n).sum(1))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor, None]:
        pos, quads = ctx.saved_tensors
        one, two, three, m, n = Torsion.bonds(pos, quads)
        length = two.norm(dim=1, keepdim=True)
        first = -g[:, None] * length * m / m.square().sum(1, keepdim=True)
        last = g[:, None] * length * n / n.square().sum(1, keepdim=True)
        s = (one * two).sum(1, keepdim=True) / length**2
        t = (three * two).sum(1, keepdim=True) / length**2
        parts = (first, t * last - first * (1 + s), s * first - last * (1 + t), last)
        made = torch.zeros_like(pos)
        for column, part in enumerate(parts):
            made.index_add_(0, quads[:, column], part)
        return made, None


class LastBlockOfTheAngle(SpectralAngle):
    """The same with a division by zero unless four bands make up each block, at size 1 too."""

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        one, other = SpectralAngle.backward(ctx, g)
        whole = torch.tensor(float(one.shape[1] % 4 == 0))
        return one / whole, other


class Spread(Function):
    """Mean squares about the mean, whose backward divides by n - 1: 0 / 0 where n is one."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return (x - x.mean(-1, keepdim=True)).square().sum(-1) / max(x.shape[-1] - 1, 1)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        centred = x - x.mean(-1, keepdim=True)
        return 2 * g[..., None] * centred / torch.tensor(x.shape[-1] - 1.0, dtype=g.dtype)


def leaf(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


def odd_sizes(op: Any, *args: Any, seed: int = 1) -> list[Finding]:
    return gradlint.check(op, [args], select=["GL706"], seed=seed, order=1).findings


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("op", "args"),
    [
        (SpectralAngle, (leaf(3, 4, 5), leaf(3, 4, 5, seed=1))),
        (Distances, (leaf(4, 3),)),
        (Torsion, (leaf(5, 3), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))),
    ],
    ids=["the angle of a single band", "the distance of a single atom", "the torsion of one atom"],
)
def test_no_finite_derivative_is_no_fault(op: Any, args: Any, seed: int) -> None:
    found = odd_sizes(op, *args, seed=seed)
    assert {(item.severity, item.grounds.explained) for item in found} <= {("info", "singular")}


def test_the_reason_is_said() -> None:
    found = odd_sizes(SpectralAngle, leaf(3, 4, 5), leaf(3, 4, 5, seed=1))
    assert {item.evidence["info because"] for item in found} == {
        "forward's own operations have no finite derivative there"
    }


@pytest.mark.parametrize(
    ("op", "args", "message"),
    [
        (Spread, (leaf(3, 4),), "gradient for `x` is not finite where `x` has shape [3, 1]"),
        (
            LastBlockOfTheAngle,
            (leaf(3, 4, 5), leaf(3, 4, 5, seed=1)),
            "gradient for `pred` is not finite where",
        ),
    ],
    ids=["n - 1", "incomplete blocks of the angle"],
)
def test_a_division_by_zero_of_backward_alone_is_found(op: Any, args: Any, message: str) -> None:
    (finding,) = (item for item in odd_sizes(op, *args) if item.severity != "info")
    assert finding.message.startswith(message)
    assert (finding.severity, finding.grounds.explained) == ("error", None)
