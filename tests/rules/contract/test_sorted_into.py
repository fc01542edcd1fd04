"""GL103: values that others are sorted into are constants by convention, whatever their name."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

from gradlint.checking.severity import as_loud_as_evidence
from gradlint.inputs._infer import infer
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code
from gradlint.targets.build import from_object


class Piecewise(Function):
    """A line between the values at kn."""

    @staticmethod
    def find(x, kn):
        return torch.searchsorted(kn, x.detach()).clamp(1, len(kn) - 1)

    @staticmethod
    def forward(ctx, x, kn, v):
        j = Piecewise.find(x, kn)
        ctx.save_for_backward(x, kn, v, j)
        return v[j - 1] + (x - kn[j - 1]) / (kn[j] - kn[j - 1]) * (v[j] - v[j - 1])

    @staticmethod
    def backward(ctx, g):
        x, kn, v, j = ctx.saved_tensors
        width = kn[j] - kn[j - 1]
        t = (x - kn[j - 1]) / width
        gv = torch.zeros_like(v).index_add(0, j - 1, g * (1 - t)).index_add(0, j, g * t)
        return g * (v[j] - v[j - 1]) / width, None, gv


class Compared(Piecewise):
    """Near it: they are compared with, and nothing is sorted into them."""

    @staticmethod
    def find(x, kn):
        return (x.detach()[:, None] > kn).sum(-1).clamp(1, len(kn) - 1)

    @staticmethod
    def forward(ctx, x, kn, v):
        j = Compared.find(x, kn)
        ctx.save_for_backward(x, kn, v, j)
        return v[j - 1] + (x - kn[j - 1]) / (kn[j] - kn[j - 1]) * (v[j] - v[j - 1])


def given() -> tuple[Tensor, Tensor, Tensor]:
    x = torch.tensor([0.1, 0.35, 0.9, 0.55], dtype=torch.float64)
    kn = torch.tensor([0.0, 0.3, 0.5, 1.0], dtype=torch.float64)
    return x, kn, torch.tensor([0.7, -0.2, 0.4, 1.1], dtype=torch.float64)


@pytest.mark.parametrize(("op", "loud"), [(Piecewise, "info"), (Compared, "warning")])
def test_knots_by_their_use(probed: Callable[..., Outcome], op: type[Function], loud: str) -> None:
    rule = by_code("GL103")
    assert rule is not None
    (finding,) = as_loud_as_evidence(probed(rule, op, *given())).findings
    assert (finding.input, finding.severity) == ("kn", loud)


def test_what_is_sorted_into_increases() -> None:
    kn = infer(from_object(Piecewise), 0)[0].args[1]
    assert bool((kn.detach().diff() > 0).all())
