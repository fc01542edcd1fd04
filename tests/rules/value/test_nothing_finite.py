"""No gradient is finite: what can't be told is no pass, and other inputs are looked for."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd.function import once_differentiable

import gradlint
from gradlint.inputs.designed_indices import _axis_of_tuples
from gradlint.model.report import TargetReport

Function = torch.autograd.Function


class Torsions(Function):
    """Dihedral angles."""

    @staticmethod
    def bonds(pos: torch.Tensor, quads: torch.Tensor) -> tuple[torch.Tensor, ...]:
        p = pos[quads]
        one, two, three = p[:, 1] - p[:, 0], p[:, 2] - p[:, 1], p[:, 3] - p[:, 2]
        return one, two, three, torch.cross(one, two, dim=1), torch.cross(two, three, dim=1)

    @staticmethod
    def forward(ctx: Any, pos: torch.Tensor, quads: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(pos, quads)
        one, two, _, m, n = Torsions.bonds(pos, quads)
        return torch.atan2((one * n).sum(1) * two.norm(dim=1), (m * n).sum(1))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor, None]:
        pos, quads = ctx.saved_tensors
        one, two, three, m, n = Torsions.bonds(pos, quads)
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


class HalfTorsions(Torsions):
    """The same with half the gradient of what is not zero."""

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor, None]:
        made, _ = Torsions.backward(ctx, g)
        return made / 2, None


class Root(Function):
    """√x, whose derivative at zero is infinite."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        root = x.sqrt()
        ctx.save_for_backward(root)
        return root

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        return g / (2 * ctx.saved_tensors[0])


class Cubed(Function):
    """x³, whose backward divides by x."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return 3 * g * x**3 / x


class Overflowing(Function):
    """Infinite whatever the input: no derivative of it means anything."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * 0 + float("inf")

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        return g * (ctx.saved_tensors[0] * 0 + float("nan"))


def checked(op: Any, *args: Any, seed: int = 1) -> TargetReport:
    given = [args] if args else None
    select = ["GL302", "GL401"]
    return gradlint.check(op, given, select=select, seed=seed, order=1).targets[0]


def gl401(report: TargetReport) -> tuple[str, str]:
    return next((c.verdict, c.note) for c in report.checks if c.code == "GL401")


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rows_of_integers_are_tuples_where_no_gradient_is_finite(seed: int) -> None:
    report = checked(Torsions, seed=seed)
    assert report.verdict == "pass"
    assert gl401(report)[0] == "pass"
    shapes = {item.name: item.shape for item in report.samples[0].args}
    assert shapes["quads"][1] == 4
    assert shapes["pos"][0] >= 5
    report = checked(HalfTorsions, seed=seed)
    assert (report.verdict, gl401(report)[0]) == ("fail", "fail")


def test_members_of_a_tuple_stay_unequal_in_further_samples() -> None:
    rows = [[3, 4, 0, 1], [4, 0, 1, 2], [1, 4, 0, 2], [3, 0, 1, 2], [1, 3, 2, 4], [4, 1, 0, 3]]
    quads = torch.tensor(rows)
    assert quads.amax(0).tolist() == [4, 4, 2, 4]  # by chance, one reaches less far
    assert _axis_of_tuples(quads, alike=False) == 1
    pairs = torch.tensor([[0, 1], [1, 4], [2, 3], [1, 5]])
    assert _axis_of_tuples(pairs, alike=False) is None
    assert _axis_of_tuples(pairs, alike=True) == 1


def test_where_no_gradient_is_finite_nothing_is_told() -> None:
    report = checked(Root, torch.zeros(3, dtype=torch.float64, requires_grad=True))
    assert report.verdict == "inconclusive"
    assert gl401(report) == (
        "inconclusive",
        "no gradient is finite at these inputs: nothing could be judged; give other inputs",
    )


def test_a_fault_that_gl302_finds_is_not_told_twice() -> None:
    report = checked(Cubed, torch.zeros(3, dtype=torch.float64, requires_grad=True))
    assert report.verdict == "fail"
    assert {finding.code for finding in report.findings} == {"GL302"}
    assert gl401(report) == ("skipped", "see GL103 (missing gradient), GL302 (nan in backward)")


def test_the_gradient_of_an_infinite_output_is_no_fault() -> None:
    report = checked(Overflowing, torch.ones(3, dtype=torch.float64, requires_grad=True))
    assert report.findings == []
    (check,) = (item for item in report.checks if item.code == "GL302")
    assert (check.verdict, check.note) == (
        "skipped",
        "forward is not finite: see GL301 (nan in forward)",
    )
