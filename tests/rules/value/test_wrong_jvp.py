"""GL403: jvp against backward and against what forward does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from gradlint.checking.severity import decided
from gradlint.model.rule import Outcome
from gradlint.rules.value.wrong_jvp import RULE

Probed = Callable[..., Outcome]


def op(jvp: Callable[..., Any], backward: Callable[..., Any] | None = None, **more: Any) -> type:
    """(x, y) ↦ (x·y², Σ x) with the given jvp(x, y, tx, ty)."""

    class Op(torch.autograd.Function):
        materialize = more.get("materialize", True)

        @staticmethod
        def forward(ctx, x, y):
            ctx.set_materialize_grads(Op.materialize)
            ctx.save_for_backward(x, y)
            ctx.save_for_forward(x, y)
            return x * y**2, x.sum()

        @staticmethod
        def backward(ctx, g, s):
            x, y = ctx.saved_tensors
            if backward is not None:
                return backward(x, y, g, s)
            return g * y**2 + s, g * 2 * x * y

        @staticmethod
        def jvp(ctx, tx, ty):
            return jvp(*ctx.saved_tensors, tx, ty)

    return Op


def right(x: Any, y: Any, tx: Any, ty: Any) -> Any:
    return tx * y**2 + 2 * x * y * ty, tx.sum()


X = torch.tensor([0.7, -1.3, 2.1])
Y = torch.tensor([1.4, 0.6, -0.9])

WRONG: dict[str, tuple[Callable[..., Any], set[str], str | None]] = {
    "sign": (lambda x, y, tx, ty: (-(tx * y**2) + 2 * x * y * ty, -tx.sum()), {"x"}, "sign"),
    "factor": (lambda x, y, tx, ty: (tx * y**2 + x * y * ty, tx.sum()), {"y"}, "scaled"),
    "ignored": (lambda x, y, tx, ty: (tx * y**2, tx.sum()), {"y"}, "zero"),
    "one output": (lambda x, y, tx, ty: (right(x, y, tx, ty)[0], 2 * tx.sum()), {"x"}, None),
    "one element": (
        lambda x, y, tx, ty: (tx * y**2 + 2 * x * y * ty * torch.tensor([1, 1.01, 1]), tx.sum()),
        {"y"},
        None,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_tangent_is_found_for_its_input(name: str, probed: Probed) -> None:
    jvp, inputs, cause = WRONG[name]
    outcome = probed(RULE, op(jvp), X, Y)
    assert outcome.verdict == "fail"
    assert {finding.input for finding in outcome.findings} == inputs
    assert outcome.findings[0].cause == cause
    assert outcome.findings[0].location is not None


def test_the_worst_element_and_output_are_named(probed: Probed) -> None:
    (finding,) = probed(RULE, op(WRONG["one element"][0]), X, Y).findings
    assert finding.index == [1]
    assert finding.output == "output[0]"
    row = finding.evidence["elements"][0]
    assert row["returned"] / row["measured"] == pytest.approx(1.01, abs=1e-4)


REJECTED: dict[str, tuple[Callable[..., Any], str]] = {
    "one of two": (lambda x, y, tx, ty: tx * y**2 + 2 * x * y * ty, "wrong-number-of-tangents"),
    "no tensor": (lambda x, y, tx, ty: (tx * y**2, 3.0), "tangent-not-a-tensor"),
    "shape": (lambda x, y, tx, ty: (tx[:2], tx.sum()), "wrong-tangent-shape"),
    "None": (lambda x, y, tx, ty: (None, tx.sum()), "none-tangent"),
    "dtype": (
        lambda x, y, tx, ty: (right(x, y, tx, ty)[0].float(), tx.sum()),
        "wrong-tangent-dtype",
    ),
}


@pytest.mark.parametrize("name", REJECTED)
def test_what_is_no_tangent_at_all_is_told(name: str, probed: Probed) -> None:
    jvp, cause = REJECTED[name]
    outcome = probed(RULE, op(jvp), X, Y)
    assert outcome.verdict == "fail"
    assert outcome.findings[0].cause == cause


def test_none_for_an_input_without_tangent_must_be_handled(probed: Probed) -> None:
    (finding,) = probed(RULE, op(right, materialize=False), X, Y).findings
    assert finding.cause == "none-tangent"
    assert "only `x` has a tangent" in finding.message


def careful(x: Any, y: Any, tx: Any, ty: Any) -> Any:
    moved = torch.zeros_like(x) if tx is None else tx
    return moved * y**2 + (0 if ty is None else 2 * x * y * ty), moved.sum()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("jvp", "materialize"), [(right, True), (careful, False)])
def test_right_ones_pass(
    dtype: torch.dtype, jvp: Callable[..., Any], materialize: bool, subject: Callable[..., Any]
) -> None:
    assert RULE.probe is not None
    outcome = RULE.probe(subject(op(jvp, materialize=materialize), X, Y, dtype=dtype))
    assert (outcome.verdict, outcome.findings) == ("pass", [])


def test_where_backward_is_the_wrong_one_jvp_is_not_blamed(probed: Probed) -> None:
    wrong_backward = lambda x, y, g, s: (g * y**2 + s, -g * 2 * x * y)  # noqa: E731
    outcome = probed(RULE, op(right, wrong_backward), X, Y)
    assert (outcome.verdict, outcome.findings) == ("pass", [])


def test_jvp_with_the_same_fault_as_backward_is_found(probed: Probed) -> None:
    wrong_backward = lambda x, y, g, s: (g * y**2 + s, g * x * y)  # noqa: E731
    outcome = probed(RULE, op(WRONG["factor"][0], wrong_backward), X, Y)
    assert [finding.input for finding in outcome.findings] == ["y"]


@pytest.mark.parametrize(("off", "severity"), [(3e-4, "info"), (1e-2, "error")])
def test_the_same_fault_as_that_of_backward_is_as_loud(
    off: float, severity: str, probed: Probed
) -> None:
    damped = 1 + off * torch.tensor([1.0, -1.0, 0.3], dtype=torch.float64)

    def jvp(x: Any, y: Any, tx: Any, ty: Any) -> Any:
        return tx * y**2 + 2 * x * y * ty * damped, tx.sum()

    def backward(x: Any, y: Any, g: Any, s: Any) -> Any:
        return g * y**2 + s, g * 2 * x * y * damped

    (finding,) = probed(RULE, op(jvp, backward), X.double(), Y.double()).findings
    assert finding.input == "y"
    assert decided(finding.severity, finding.grounds)[0] == severity


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return (8 * x).round() / 8

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output

    @staticmethod
    def jvp(ctx, tangent):
        return 1 * tangent


class HalfRounded(Rounded):
    @staticmethod
    def jvp(ctx, tangent):
        return 0.5 * tangent


@pytest.mark.parametrize(("function", "severity"), [(Rounded, "info"), (HalfRounded, "error")])
def test_a_surrogate_is_one_in_both_modes(function: type, severity: str, probed: Probed) -> None:
    x = torch.linspace(-1.03, 2.11, 12, dtype=torch.float64)
    (finding,) = probed(RULE, function, x).findings
    assert finding.message == "wrong jvp for `x`"
    assert decided(finding.severity, finding.grounds)[0] == severity


class OtherSubgradient(torch.autograd.Function):
    """|x| whose jvp takes another side at zero than backward: both are right."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x.abs()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.where(x >= 0, g, -g)

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, t, -t)


def test_another_subgradient_is_no_fault(probed: Probed) -> None:
    outcome = probed(RULE, OtherSubgradient, torch.tensor([0.0, 1.5, -0.5]))
    assert outcome.findings == []


class Complex(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        ctx.save_for_forward(z)
        return z * z.conj() + z**2

    @staticmethod
    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return g * z + g.conj() * z + g * (2 * z).conj()

    @staticmethod
    def jvp(ctx, t):
        (z,) = ctx.saved_tensors
        return t * z.conj() + z * t.conj() + 2 * z * t


def test_complex(probed: Probed) -> None:
    z = torch.randn(4, dtype=torch.complex128, generator=torch.Generator().manual_seed(0))
    outcome = probed(RULE, Complex, z)
    assert (outcome.verdict, outcome.findings) == ("pass", [])


def test_ops_without_jvp_of_their_own_are_skipped(probed: Probed) -> None:
    assert probed(RULE, lambda x: x.sin(), X).verdict == "skipped"

    class NoJvp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g

    assert "no Python Function with a jvp" in probed(RULE, NoJvp, X).note


def test_a_jvp_without_statements_is_none(probed: Probed) -> None:
    class Stub(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad

        @staticmethod
        def jvp(ctx, *tangents):
            """Forward mode."""

    class ReturnsNothing(Stub):
        @staticmethod
        def jvp(ctx, *tangents):
            """Forward mode."""
            2 * tangents[0]

    assert "no Python Function with a jvp" in probed(RULE, Stub, X).note
    assert probed(RULE, ReturnsNothing, X).verdict == "fail"


def test_an_open_refusal_is_no_finding(probed: Probed) -> None:
    def refuse(*values: Any) -> Any:
        raise NotImplementedError("forward mode is not supported")

    outcome = probed(RULE, op(refuse), X, Y)
    assert (outcome.verdict, outcome.findings) == ("skipped", [])


class Roots(torch.autograd.Function):
    """√(x² + y²), whose jvp divides by x."""

    @staticmethod
    def forward(ctx, x, y):
        r = (x * x + y * y).sqrt()
        ctx.save_for_backward(x, y, r)
        ctx.save_for_forward(x, y, r)
        return r

    @staticmethod
    def backward(ctx, g):
        x, y, r = ctx.saved_tensors
        return g * x / r, g * y / r

    @staticmethod
    def jvp(ctx, tx, ty):
        x, y, r = ctx.saved_tensors
        return tx * x / r + ty * (y * x) / (x * r)


def test_a_tangent_that_is_nan_is_a_finding(probed: Probed) -> None:
    outcome = probed(RULE, Roots, torch.tensor([0.7, 0.0, 2.1]), Y)
    assert outcome.verdict == "fail"
    assert [finding.input for finding in outcome.findings] == ["x", "y"]
    finding = outcome.findings[1]
    assert finding.message == "jvp for `y` gives nan where forward has a finite slope"
    assert finding.index == [1]
    assert finding.cause_text == "not-finite: 1 of 3 elements are NaN or infinite"


def test_a_tangent_that_is_infinite_where_forward_has_no_slope_is_right(probed: Probed) -> None:
    class Infinite(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return x.log()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g / x

        @staticmethod
        def jvp(ctx, t):
            (x,) = ctx.saved_tensors
            return t / x

    outcome = probed(RULE, Infinite, torch.tensor([0.7, 0.0, 2.1]))
    assert not [finding for finding in outcome.findings if finding.cause == "not-finite"]


def scaled_by_number(factor: float) -> type:
    """x · s², where forward takes no s but a tensor without axes."""

    class ScaledByNumber(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, s):
            if s.dim() != 0:
                raise ValueError("s must have no axes")
            ctx.save_for_backward(x, s)
            ctx.save_for_forward(x, s)
            return x * s**2

        @staticmethod
        def backward(ctx, g):
            x, s = ctx.saved_tensors
            return g * s**2, (2 * g * x * s).sum()

        @staticmethod
        def jvp(ctx, tx, ts):
            x, s = ctx.saved_tensors
            return tx * s**2 + factor * x * s * ts

    return ScaledByNumber


@pytest.mark.parametrize(("factor", "inputs"), [(2.0, set()), (1.0, {"s"})])
def test_a_number_stays_a_number(factor: float, inputs: set[str], probed: Probed) -> None:
    outcome = probed(RULE, scaled_by_number(factor), X, torch.tensor(1.3))
    assert {finding.input for finding in outcome.findings} == inputs
