"""GL501, GL502, GL503: second derivatives right, wrong, silently lost, openly refused."""

from __future__ import annotations

import pytest
import torch
from torch.autograd.function import once_differentiable as once

from gradlint.experiments.subject import Subject
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.rules.order import (
    once_differentiable,
    second_derivative_lost,
    wrong_second_derivative,
)
from gradlint.targets.build import from_object


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad_output


class NoGrad(Cube):
    @staticmethod
    def backward(ctx, grad_output):
        with torch.no_grad():
            (x,) = ctx.saved_tensors
            return 3 * x**2 * grad_output


class Once(Cube):
    @staticmethod
    @once
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad_output


class SavedIntermediate(Cube):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(3 * x**2)
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        (slope,) = ctx.saved_tensors
        return slope * grad_output


class HalfDetached(Cube):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 3 * x * x.detach() * grad_output


class Raises(Cube):
    @staticmethod
    def backward(ctx, grad_output):
        if torch.is_grad_enabled():
            raise KeyError("mode")
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad_output


class Linear(Cube):
    @staticmethod
    def backward(ctx, grad_output):
        return 3 * grad_output

    @staticmethod
    def forward(ctx, x):
        return 3 * x


# op → verdicts of GL501, GL502, GL503 (number of findings of each)
CASES = {
    Cube: (0, 0, 0),
    Linear: (0, 0, 0),
    NoGrad: (0, 1, 0),
    Once: (0, 0, 1),
    SavedIntermediate: (0, 1, 0),
    HalfDetached: (1, 0, 0),
    Raises: (1, 0, 0),
    torch.sin: (0, 0, 0),
    torch.relu: (0, 0, 0),
}


@pytest.mark.parametrize("op", CASES, ids=lambda op: op.__name__)
def test_second_order_rules(op):
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    subject = Subject(
        from_object(op), Sample("test", "--inputs", (x.requires_grad_(),)), Settings(seed=1)
    )
    rules = (wrong_second_derivative, second_derivative_lost, once_differentiable)
    outcomes = [rule.probe(subject) for rule in rules]
    assert tuple(len(outcome.findings) for outcome in outcomes) == CASES[op]
    if CASES[op] == (0, 0, 0):
        assert outcomes[0].verdict == "pass"
        assert outcomes[0].resolution is not None
        assert outcomes[0].resolution < 1e-6


def test_lost_names_what_is_lost():
    x = torch.full((3,), 0.7, dtype=torch.float64, requires_grad=True)
    subject = Subject(from_object(SavedIntermediate), Sample("t", "--inputs", (x,)), Settings())
    (finding,) = second_derivative_lost.probe(subject).findings
    assert finding.input == "x"
    assert finding.severity == "warning"
    assert finding.cause == "saved-without-graph"
    subject = Subject(from_object(NoGrad), Sample("t", "--inputs", (x,)), Settings())
    (finding,) = second_derivative_lost.probe(subject).findings
    assert finding.cause is None


def test_once_differentiable_is_information_with_torchs_text():
    x = torch.full((3,), 0.7, dtype=torch.float64, requires_grad=True)
    subject = Subject(from_object(Once), Sample("t", "--inputs", (x,)), Settings())
    (finding,) = once_differentiable.probe(subject).findings
    assert finding.severity == "info"
    assert "once_differentiable" in finding.evidence["original"]


class FiveForSix(torch.autograd.Function):
    """x³, whose backward is a Function of its own; its derivative by x is 5x, not 6x."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        return FiveForSixBackward.apply(grad_output, *ctx.saved_tensors)


class FiveForSixBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, grad_output, x):
        ctx.save_for_backward(grad_output, x)
        return grad_output * 3 * x**2

    @staticmethod
    def backward(ctx, grad):
        grad_output, x = ctx.saved_tensors
        return grad * 3 * x**2, grad * grad_output * 5 * x


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("rows", [1, 33])
def test_sixteen_bits_are_judged_by_the_twin(dtype: torch.dtype, rows: int) -> None:
    x = torch.randn(rows, 5, generator=torch.Generator().manual_seed(rows)).to(dtype)
    sample = Sample("test", "--inputs", (x.requires_grad_(),))
    outcome = wrong_second_derivative.probe(Subject(from_object(Cube), sample, Settings(seed=1)))
    assert (outcome.verdict, outcome.findings) == ("pass", [])
    assert outcome.resolution is not None
    assert outcome.resolution < 0.25
    wrong = Subject(from_object(FiveForSix), sample, Settings(seed=1))
    assert [found.input for found in wrong_second_derivative.probe(wrong).findings] == ["x"]


def test_a_compiled_function_refuses_openly():
    """torch.compile makes a backward for one derivative."""
    compiled = torch.compile(lambda x, w: torch.tanh(x @ w).sum(-1), backend="aot_eager")
    generator = torch.Generator().manual_seed(0)
    x, w = (torch.randn(3, 3, generator=generator, dtype=torch.float64) for _ in range(2))
    sample = Sample("s", "given", (x.requires_grad_(), w.requires_grad_()))
    subject = Subject(from_object(compiled), sample, Settings(seed=0))
    outcome = wrong_second_derivative.probe(subject)
    assert (outcome.verdict, outcome.findings) == ("skipped", [])
    (finding,) = once_differentiable.probe(subject).findings
    assert (finding.code, finding.severity) == ("GL503", "info")


def two_factors(saved, returned):
    """x·tanh(x)·w with what ``saved`` keeps for backward, and the gradients that ``returned`` makes
    of grad_output and that."""

    class Op(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            saved(ctx, x, w)
            return x * x.tanh() * w

        @staticmethod
        def backward(ctx, grad_output):
            return returned(ctx, grad_output)

    return Op


def slope(x, h):
    """The derivative of x·h, where h = tanh(x)."""
    return h + x * (1 - h * h)


class Product(torch.autograd.Function):
    """x·tanh(x)·w, which saves tanh(x)."""

    @staticmethod
    def forward(ctx, x, w):
        h = x.tanh()
        ctx.save_for_backward(x, h, w)
        return x * h * w

    @staticmethod
    def backward(ctx, grad_output):
        x, h, w = ctx.saved_tensors
        return grad_output * w * slope(x, h), grad_output * x * h


class ProductAndFactor(Product):
    """The same with tanh(x) as a second output, which keeps its graph."""

    @staticmethod
    def forward(ctx, x, w):
        h = x.tanh()
        ctx.save_for_backward(x, h, w)
        return x * h * w, h

    @staticmethod
    def backward(ctx, grad_output, grad_h):
        x, h, w = ctx.saved_tensors
        return grad_output * w * slope(x, h) + grad_h * (1 - h * h), grad_output * x * h


def _kept(ctx, x, w):
    ctx.h = x.tanh()
    ctx.save_for_backward(x, w)


def _from_kept(ctx, grad_output):
    x, w = ctx.saved_tensors
    return grad_output * w * slope(x, ctx.h), grad_output * x * ctx.h


def _from_detached(ctx, grad_output):
    x, w = ctx.saved_tensors
    h = x.tanh()
    return grad_output * w * slope(x, h.detach()), grad_output * x * h


def second_order_findings(op):
    generator = torch.Generator().manual_seed(0)
    x, w = (torch.randn(3, 4, generator=generator, dtype=torch.float64) for _ in range(2))
    sample = Sample("test", "--inputs", (x.requires_grad_(), w.requires_grad_()))
    subject = Subject(from_object(op), sample, Settings(seed=1))
    return wrong_second_derivative.probe(subject).findings


@pytest.mark.parametrize(
    ("op", "named"),
    [
        (Product, "backward uses `h`, which forward computes from `x`"),
        (two_factors(_kept, _from_kept), "backward uses `ctx.h`, which forward computes from `x`"),
    ],
)
def test_what_forward_saves_without_a_graph_is_named(op, named):
    (finding,) = second_order_findings(op)
    assert finding.input == "x"
    assert finding.cause == "saved-without-graph"
    assert named in finding.cause_text
    assert finding.help.startswith("compute `")


def test_an_output_that_is_saved_keeps_its_graph():
    assert second_order_findings(ProductAndFactor) == []


def test_a_graph_that_backward_cuts_itself_has_no_such_cause():
    op = two_factors(lambda ctx, x, w: ctx.save_for_backward(x, w), _from_detached)
    (finding,) = second_order_findings(op)
    assert finding.input == "x"
    assert finding.cause != "saved-without-graph"
    assert "output[" not in finding.cause_text


class MixedPower(torch.autograd.Function):
    """a²·b³."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a**2 * b**3

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return grad_output * 2 * a * b**3, grad_output * 3 * a**2 * b**2


class FrozenInTheFirst(MixedPower):
    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return grad_output * 2 * a * b * b.detach() ** 2, grad_output * 3 * a**2 * b**2


class FrozenInTheSecond(MixedPower):
    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return grad_output * 2 * a * b**3, grad_output * 3 * a * a.detach() * b**2


class LostInTheSecond(MixedPower):
    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return grad_output * 2 * a.detach() * b**3, grad_output * 3 * a.detach() ** 2 * b**2


@pytest.mark.parametrize(
    ("op", "rule", "input", "shown"),
    [
        (
            FrozenInTheFirst,
            wrong_second_derivative,
            "b",
            "returned for `a`: its derivative with respect to `b`",
        ),
        (
            FrozenInTheSecond,
            wrong_second_derivative,
            "a",
            "returned for `b`: its derivative with respect to `a`",
        ),
        (LostInTheSecond, second_derivative_lost, "a", "returned for `"),
    ],
)
def test_the_gradient_whose_derivative_is_wrong_is_shown(op, rule, input, shown):
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(3, 4, generator=generator, dtype=torch.float64) for _ in range(2))
    sample = Sample("test", "--inputs", (a.requires_grad_(), b.requires_grad_()))
    subject = Subject(from_object(op), sample, Settings(seed=1))
    (finding,) = rule.probe(subject).findings
    assert finding.input == input
    assert finding.excerpt is not None
    assert finding.excerpt.label.startswith(shown)
