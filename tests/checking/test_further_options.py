"""Options with which forward is finite for positive numbers alone."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function

import gradlint
from gradlint.model.report import TargetReport

FLAGS: dict[str, Any] = {"seed": 0, "order": 1, "select": ["GL1", "GL2", "GL3", "GL4"]}


def check(thing: Any) -> TargetReport:
    return gradlint.check(thing, **FLAGS).targets[0]


class _Shares(Function):
    scale = 1.0

    @staticmethod
    def forward(ctx, x, weight, log):
        ctx.save_for_backward(x, weight)
        ctx.log = log
        y = x * weight
        shares = y / y.sum(-1, keepdim=True)
        return torch.log(shares) if log else shares

    @classmethod
    def backward(cls, ctx, g):
        x, weight = ctx.saved_tensors
        y = x * weight
        total = y.sum(-1, keepdim=True)
        if ctx.log:
            g = cls.scale * g * total / y
        gy = (g - (g * y).sum(-1, keepdim=True) / total) / total
        return gy * weight, (gy * x).sum_to_size(weight.shape), None


class _WrongLogarithm(_Shares):
    scale = 2.0


def shares(x, weight, log=False):
    return _Shares.apply(x, weight, log)


def wrong_shares(x, weight, log=False):
    return _WrongLogarithm.apply(x, weight, log)


def test_an_option_that_takes_a_logarithm_is_tried_with_positive_numbers():
    findings = [item for item in check(wrong_shares).findings if item.severity != "info"]
    assert {(item.code, item.severity, item.input) for item in findings} == {
        ("GL401", "error", "x"),
        ("GL401", "error", "weight"),
    }
    assert {item.sample for item in findings} == {"with log=True"}


def test_what_is_normalized_takes_no_steps():
    # Scaled as a whole its inputs leave the shares as they are: that is no step function.
    causes = [item.cause_text or "" for item in check(wrong_shares).findings]
    assert not any("steps" in text for text in causes)


def test_the_right_one_passes():
    assert [item.code for item in check(shares).findings if item.severity != "info"] == []
