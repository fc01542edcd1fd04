"""GL401 at other float arguments than the sample's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import Function

from gradlint.experiments.subject import Subject
from gradlint.experiments.value.other_float_arguments import with_defaults, with_values
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code

RULE = by_code("GL401")


class Power(Function):
    """scale·|x|ᵖ + shift."""

    @staticmethod
    def forward(ctx, x, scale=1.0, p=2.0, shift=0.0):
        ctx.save_for_backward(x)
        ctx.scale, ctx.p = scale, p
        return scale * x.abs() ** p + shift

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        slope = ctx.p * x.abs() ** (ctx.p - 1) * x.sign()
        return ctx.scale * grad_output * slope, None, None, None


class ScaleLeftOut(Power):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        slope = ctx.p * x.abs() ** (ctx.p - 1) * x.sign()
        return grad_output * slope, None, None, None


class SquareOnly(Power):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return ctx.scale * grad_output * 2 * x, None, None, None


class Bounded(Power):
    @staticmethod
    def forward(ctx, x, scale=1.0, p=2.0, shift=0.0):
        if not scale >= 1.0:
            raise ValueError("scale must be at least 1")
        return Power.forward(ctx, x, scale, p, shift)

    @staticmethod
    def backward(ctx, grad_output):
        return ScaleLeftOut.backward(ctx, grad_output)


class OneScaleOnly(Bounded):
    @staticmethod
    def forward(ctx, x, scale=1.0, p=2.0, shift=0.0):
        if scale != 1.0:
            raise ValueError("not supported")
        return Power.forward(ctx, x, scale, p, shift)


class Huber(Function):
    """½r² for r below delta, and a line beyond it."""

    @staticmethod
    def forward(ctx, r, delta=1.0):
        ctx.save_for_backward(r)
        size = r.abs()
        return torch.where(size < delta, r * r / 2, delta * (size - delta / 2)).mean()

    @staticmethod
    def backward(ctx, grad_output):
        (r,) = ctx.saved_tensors
        return grad_output * r.clamp(-1, 1) / r.numel(), None


def matrix() -> torch.Tensor:
    return torch.randn(3, 4, generator=torch.Generator().manual_seed(1))


def probe(probed: Callable[..., Outcome], op: Any, *args: Any) -> Outcome:
    assert RULE is not None
    return probed(RULE, op, *args)


@pytest.mark.parametrize("args", [(), (1.0,), (1.0, 2.0, 0.0), (0.5, 3.0, 1.0)])
def test_right_at_every_value(probed: Callable[..., Outcome], args: tuple[float, ...]) -> None:
    outcome = probe(probed, Power, matrix(), *args)
    assert (outcome.verdict, outcome.findings) == ("pass", [])


@pytest.mark.parametrize("args", [(), (1.0,), (1.0, 2.0)])
def test_argument_left_out_is_named(
    probed: Callable[..., Outcome], args: tuple[float, ...]
) -> None:
    outcome = probe(probed, ScaleLeftOut, matrix(), *args)
    (finding,) = outcome.findings
    assert outcome.verdict == "fail"
    assert finding.message == "wrong gradient for `x` where `scale` is 0.63"
    assert finding.cause == "argument-left-out"
    assert finding.cause_text.startswith(
        "argument left out: where `scale` is 1 the gradient is right; scaled: "
    )
    assert finding.input == "x"
    assert finding.evidence["elements"]


def test_what_is_left_out_is_said_once(probed: Callable[..., Outcome]) -> None:
    (finding,) = probe(probed, Huber, 1.5 * matrix()).findings
    assert finding.cause_text.startswith(
        "argument left out: where `delta` is 1 the gradient is right; backward computes as if"
        " `delta` were 1.0: "
    )
    assert finding.cause_text.count("left out") == 1


def test_number_in_place_of_an_argument(probed: Callable[..., Outcome]) -> None:
    (finding,) = probe(probed, SquareOnly, matrix()).findings
    assert finding.message == "wrong gradient for `x` where `p` is 1.63"


def test_arguments_stay_where_forward_takes_them(probed: Callable[..., Outcome]) -> None:
    (finding,) = probe(probed, Bounded, matrix(), 1.0).findings
    assert finding.message == "wrong gradient for `x` where `scale` is 1.7"
    outcome = probe(probed, OneScaleOnly, matrix(), 1.0)
    assert (outcome.verdict, outcome.findings) == ("pass", [])


def test_wrong_at_the_sample_is_told_once(probed: Callable[..., Outcome]) -> None:
    (finding,) = probe(probed, ScaleLeftOut, matrix(), 0.5).findings
    assert finding.message == "wrong gradient for `x`"


def test_keyword_arguments_and_containers(probed: Callable[..., Outcome]) -> None:
    def scaled(x: torch.Tensor, scales: list[float], *, shift: float = 0.0) -> torch.Tensor:
        return ScaleLeftOut.apply(x, scales[1]) + shift

    (finding,) = probe(probed, scaled, matrix(), [2.0, 1.0]).findings
    assert finding.message == "wrong gradient for `x` where `scales[1]` is 0.63"


def test_no_calls_without_float_arguments(subject: Callable[..., Subject]) -> None:
    bound = subject(torch.sin, matrix())
    assert with_defaults(bound) is bound.sample
    again = with_values(bound, bound.sample, {})
    assert again.args[0] is bound.sample.args[0]
