"""Faults that a parameter of equal elements hides, under an option away from its default."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd import Function

import gradlint
from gradlint.model.report import TargetReport


def check(thing: Any) -> TargetReport:
    flags: dict[str, Any] = {"seed": 0, "order": 1, "select": ["GL1", "GL2", "GL4"]}
    return gradlint.check(thing, **flags).targets[0]


class Gate(Function):
    @staticmethod
    def forward(ctx, x, z, weight, late):
        ctx.save_for_backward(x, z, weight)
        ctx.late = late
        return (x * z * weight).sin() if late else x.sin() * z * weight

    @staticmethod
    def backward(ctx, g):
        x, z, weight = ctx.saved_tensors
        if ctx.late:
            g = g * (x * z * weight).cos()
            gx, gz, gw = g * z * weight, g * x * weight, g * x * z
        else:
            gx, gz, gw = g * x.cos() * z * weight, g * x.sin() * weight, g * x.sin() * z
        return gx, gz, gw.reshape(-1, len(weight)).sum(0), None


class WithoutTheWeight(Gate):
    """Leaves the weight out of one gradient, and only of the later gate."""

    @staticmethod
    def backward(ctx, g):
        gx, gz, gw, _ = Gate.backward(ctx, g)
        return gx, gz / ctx.saved_tensors[2] if ctx.late else gz, gw, None


def gated(function: type[Function]) -> type[nn.Module]:
    class Gated(nn.Module):
        def __init__(self, dim: int, late: bool = False):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(dim))
            self.late = late

        def forward(self, x, z):
            return function.apply(x, z, self.weight, self.late)

    return Gated


@pytest.mark.parametrize(("function", "found"), [(Gate, False), (WithoutTheWeight, True)])
def test_a_weight_of_ones_under_another_option(function: type[Function], found: bool) -> None:
    report = check(gated(function))
    wrong = [item for item in report.findings if item.code == "GL401"]
    assert [item.input for item in wrong][:1] == (["z"] if found else [])
    for item in wrong:
        assert "where the elements of `weight` differ" in item.message
        assert "late=True in the constructor" in item.message
