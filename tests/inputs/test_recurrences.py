"""A series that forward goes through step by step, and numbers beside it. Near them: rows that are
gone through, with weights of their own."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

import gradlint
from gradlint.inputs._infer import infer
from gradlint.targets.build import from_object


class Level(Function):
    """Squared errors of the forecasts of a level that follows what was seen."""

    @staticmethod
    def forward(ctx, y, seen, rate):
        m, total, rows = torch.zeros_like(rate), torch.zeros_like(rate), []
        for t in range(len(y)):
            v = y[t] - m
            rows.append(torch.stack([v, m]))
            if seen is None or seen[t]:
                total = total + v * v
                m = m + rate * v
        ctx.save_for_backward(seen, rate, torch.stack(rows))
        return total

    @staticmethod
    def backward(ctx, g):
        seen, rate, rows = ctx.saved_tensors
        gy, grate, dm = rows.new_zeros(len(rows)), torch.zeros_like(rate), torch.zeros_like(rate)
        for t in range(len(rows) - 1, -1, -1):
            v, _ = rows[t]
            if seen is None or seen[t]:
                grate = grate + dm * v
                dv = 2 * g * v + rate * dm
                gy[t] = dv
                dm = dm - dv
        return gy, None, grate


class LevelWithoutRate(Level):
    """Its gradient of the rate is that of the last step."""

    @staticmethod
    def backward(ctx, g):
        gy, _, grate = Level.backward(ctx, g)
        return gy, None, 0.5 * grate


class Mixed(Function):
    """Near it: each channel of a row has a rate of its own."""

    @staticmethod
    def forward(ctx, x, mix):
        h, rows = torch.zeros_like(mix), []
        for t in range(len(x)):
            h = mix * h + x[t]
            rows.append(h)
        found = torch.stack(rows)
        ctx.save_for_backward(mix, found)
        return found

    @staticmethod
    def backward(ctx, g):
        mix, rows = ctx.saved_tensors
        gx, gd, dh = torch.zeros_like(g), torch.zeros_like(mix), torch.zeros_like(mix)
        for t in range(len(g) - 1, -1, -1):
            dh = dh + g[t]
            gx[t] = dh
            if t:
                gd = gd + dh * rows[t - 1]
            dh = dh * mix
        return gx, gd


@pytest.mark.parametrize("seed", range(3))
def test_numbers_beside_a_series(seed: int) -> None:
    y, seen, rate = infer(from_object(Level), seed)[0].args
    assert (y.dim(), rate.dim()) == (1, 0)
    assert (seen.dtype, seen.shape) == (torch.bool, y.shape)


def test_rows_stay_rows() -> None:
    x, mix = infer(from_object(Mixed), 0)[0].args
    assert x.dim() == 2
    assert mix.dim() > 0


@pytest.mark.parametrize(("op", "wrong"), [(Level, set()), (LevelWithoutRate, {"rate"})])
def test_what_is_told_of_a_series(op, wrong) -> None:
    report = gradlint.check(op, seed=0, order=1, select=["GL0", "GL401"])
    assert {item.input for item in report.findings if item.severity != "info"} == wrong
