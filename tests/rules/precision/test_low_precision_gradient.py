"""GL801: gradients in low precision worse than their dtype allows, and nothing else."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

from gradlint.experiments.subject import Subject
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.rules.precision.low_precision_gradient import RULE
from gradlint.targets.build import from_object

LOW = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def probed(op, dtype, *shapes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    values = tuple(
        torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
        for shape in shapes
    )
    subject = Subject(from_object(op), Sample("s", "given", values), Settings(seed=seed))
    return RULE.probe(subject)


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


class HalfBelowFloat64(Exp):
    """Right in float64 alone."""

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y if g.dtype == torch.float64 else (g.half() * y.half()).to(g.dtype)


class Weighted(Function):
    """The gradient of the weight is a sum of products cast to float16 below float64."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        low = g.dtype if g.dtype == torch.float64 else torch.float16
        return g @ weight.mT, (x.mT.to(low).to(g.dtype) @ g)


def spoiled(change):
    """:class:`Exp` with its gradient changed below float64."""

    class Spoiled(Exp):
        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y if g.dtype == torch.float64 else change(g * y)

    return Spoiled


@pytest.mark.parametrize("dtype", LOW)
def test_a_right_gradient_passes(dtype):
    outcome = probed(Exp, LOW[dtype], (5, 6))
    assert (outcome.verdict, outcome.findings) == ("pass", [])
    assert outcome.resolution < (1e-5 if dtype == "float32" else 0.1)


def test_a_cast_to_float16_is_named():
    outcome = probed(HalfBelowFloat64, torch.float32, (5, 6))
    (finding,) = outcome.findings
    assert outcome.verdict == "fail"
    assert (finding.severity, finding.cause, finding.input) == ("warning", "low-precision", "x")
    assert "float16" in finding.cause_text
    assert "float32" in finding.message
    assert finding.evidence["differing"] > 15
    worst = finding.evidence["elements"][0]
    assert worst["index"] == finding.index
    assert worst["error"] == abs(worst["returned"] - worst["float64"]) > 0
    assert worst["ulps"] == pytest.approx(
        worst["error"] / abs(worst["float64"]) * 2.0**23, rel=0.01
    )
    assert finding.location.line
    assert finding.reproduce


def test_a_cast_before_a_sum_is_named():
    outcome = probed(Weighted, torch.float32, (40, 6), (6, 5))
    (finding,) = outcome.findings
    assert (finding.cause, finding.input) == ("low-precision", "weight")
    assert "float16" in finding.cause_text
    assert "float32" in finding.help


def test_the_same_cast_is_nothing_in_bfloat16():
    assert probed(HalfBelowFloat64, torch.bfloat16, (5, 6)).verdict == "pass"


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_sign_of_one_element(dtype):
    def change(gradient):
        gradient.view(-1)[7] *= -1
        return gradient

    outcome = probed(spoiled(change), LOW[dtype], (5, 6))
    # In float16 the measurement itself may see it; then it is GL401's.
    if outcome.verdict == "skipped":
        assert outcome.note == "see GL401"
        return
    (finding,) = outcome.findings
    assert finding.index == [1, 1]
    assert finding.evidence["differing"] == 1
    assert finding.severity == "error"


def test_what_gl401_has_found_is_not_told_twice():
    outcome = probed(spoiled(lambda gradient: 3 * gradient), torch.float32, (5, 6))
    assert (outcome.verdict, outcome.note) == ("skipped", "see GL401")


def test_an_op_without_a_twin_is_left_to_gl401():
    class Only(Exp):
        @staticmethod
        def forward(ctx, x):
            if x.dtype != torch.float32:
                raise TypeError("expected Float")
            return Exp.forward(ctx, x)

    outcome = probed(Only, torch.float32, (5, 6))
    assert outcome.verdict == "skipped"
    assert "does not accept it" in outcome.note
    outcome = probed(lambda x: x.float().sin().to(x.dtype), torch.float32, (5, 6))
    assert outcome.verdict == "skipped"
    assert "lower precision in float64 too" in outcome.note


class Float32Backward(Exp):
    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return (g.float() * y.float()).to(g.dtype)


def test_float32_inside_float64_is_told():
    (finding,) = probed(Float32Backward, torch.float64, (5, 6)).findings
    assert (finding.severity, finding.cause, finding.input) == ("info", "low-precision", "x")
    assert "gradient of `x`" in finding.cause_text
    outcome = probed(lambda x: x.float().exp().to(x.dtype), torch.float64, (5, 6))
    (finding,) = outcome.findings
    assert outcome.verdict == "pass"
    assert "`output`" in finding.cause_text


@pytest.mark.parametrize(
    "op",
    [
        Exp,
        torch.relu,
        lambda x: x * (9000 * x).round(),
        lambda x: (9000 * x).round() / 4096 + 0 * x,
    ],
)
def test_float64_has_nothing_to_tell(op):
    outcome = probed(op, torch.float64, (5, 6))
    assert (outcome.verdict, outcome.findings) == ("skipped", [])
    assert "--dtype" in outcome.note


def test_a_stochastic_op_is_compared_under_the_same_draws():
    def thinned(x):
        return x * x * (torch.rand(x.shape, dtype=x.dtype) > 0.5)

    assert probed(thinned, torch.bfloat16, (5, 6)).verdict == "pass"
