"""GL405: outputs that a loss does not use, and gradients that are zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from gradlint.checking.severity import as_loud_as_evidence
from gradlint.model.rule import Outcome
from gradlint.rules.value.undefined_or_zero_grad_output import RULE

Probed = Callable[..., Outcome]

X = torch.tensor([0.7, -1.3, 2.1])


def two(backward: Callable[..., Any], materialize: bool = False) -> type:
    """x ↦ (sin x, x²) with the given backward(x, g_sin, g_square)."""

    class Op(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            ctx.save_for_backward(x)
            return x.sin(), x.square()

        @staticmethod
        def backward(ctx, a, b):
            return backward(*ctx.saved_tensors, a, b)

    return Op


def careful(x: Any, a: Any, b: Any) -> Any:
    grad = torch.zeros_like(x)
    if a is not None:
        grad = grad + a * x.cos()
    return grad if b is None else grad + b * 2 * x


def plain(x: Any, a: Any, b: Any) -> Any:
    return a * x.cos() + b * 2 * x


def drops(x: Any, a: Any, b: Any) -> Any:
    return None if b is None else careful(x, a, b)


def normalised(x: Any, a: Any, b: Any) -> Any:
    return plain(x, a, b) * (b.norm() / b.norm())


def refuses(x: Any, a: Any, b: Any) -> Any:
    if a is None or b is None:
        raise NotImplementedError("both outputs must be used")
    return plain(x, a, b)


def test_raising_on_an_undefined_gradient(probed: Probed) -> None:
    outcome = probed(RULE, two(plain), X)
    assert outcome.verdict == "fail"
    finding = outcome.findings[0]
    assert finding.cause == "undefined-grad-output"
    assert finding.message == "backward raises TypeError where `output[1]` is unused"
    assert finding.location is not None
    assert "a * x.cos() + b * 2 * x" in str(finding.excerpt)


def test_forgetting_one_output_when_the_other_is_undefined(probed: Probed) -> None:
    (finding,) = probed(RULE, two(drops), X).findings
    assert finding.cause == "undefined-grad-output"
    assert (finding.input, finding.output) == ("x", "output[1]")
    assert finding.evidence["differing"] == 3


def test_nan_where_one_gradient_is_zero(probed: Probed) -> None:
    findings = probed(RULE, two(normalised, materialize=True), X).findings
    assert {finding.cause for finding in findings} == {"zero-grad-output"}
    assert findings[0].evidence["not_finite"] == 3


@pytest.mark.parametrize(("backward", "materialize"), [(careful, False), (plain, True)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_right_ones_pass(
    backward: Callable[..., Any],
    materialize: bool,
    dtype: torch.dtype,
    subject: Callable[..., Any],
) -> None:
    assert RULE.probe is not None
    outcome = RULE.probe(subject(two(backward, materialize), X, dtype=dtype))
    assert (outcome.verdict, outcome.findings) == ("pass", [])


def test_an_open_refusal_is_a_note(probed: Probed) -> None:
    outcome = as_loud_as_evidence(probed(RULE, two(refuses), X))
    assert outcome.verdict == "pass"
    assert {finding.severity for finding in outcome.findings} == {"info"}


class AddsConstant(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g + 1.0


class DividesByTheNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * g.norm() / g.norm()


class SingleUnhandled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


def test_zero_in_is_zero_out(probed: Probed) -> None:
    (finding,) = probed(RULE, DividesByTheNorm, X).findings
    assert finding.message.startswith("gradient for `x` is not finite in 3 of 3 elements")
    # GL401 has what is wrong at every grad_output.
    assert probed(RULE, AddsConstant, X).findings == []


def test_a_single_output_without_gradient_is_a_warning(probed: Probed) -> None:
    (finding,) = probed(RULE, SingleUnhandled, X).findings
    assert (finding.severity, finding.cause) == ("warning", "undefined-grad-output")


def test_infinite_derivatives_and_builtins_are_left_alone(probed: Probed) -> None:
    # √ at 0: 0·inf = NaN, but the derivative is infinite there.
    assert probed(RULE, torch.sqrt, torch.tensor([0.0, 1.0])).findings == []
    assert probed(RULE, lambda x: torch.linalg.svd(x), torch.randn(3, 4)).findings == []
    assert probed(RULE, lambda x: torch.linalg.eigh(x + x.mT), torch.randn(3, 3)).findings == []
    assert probed(RULE, lambda x: x.unbind(), torch.randn(6, 3)).verdict == "pass"


class SpoilsItsGraph(torch.autograd.Function):
    """A second backward through the same graph raises: another defect, if one at all."""

    @staticmethod
    def forward(ctx, x):
        ctx.kept = [x]
        return 2 * x, 3 * x

    @staticmethod
    def backward(ctx, a, b):
        ctx.kept.pop()
        return 2 * a + 3 * b


def test_a_graph_that_can_be_used_once_only_is_made_anew(probed: Probed) -> None:
    assert probed(RULE, SpoilsItsGraph, X).findings == []
