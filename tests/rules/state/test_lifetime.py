"""GL604: what outlives a call and its backward."""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.autograd import Function

from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code
from gradlint.rules.state.tensor_kept_on_ctx import RULE

Probed = Callable[..., Outcome]

X = torch.tensor([0.7, -1.3, 2.1])


def keeping(keep: Callable[[Any, torch.Tensor, torch.Tensor], None]) -> type:
    """x ↦ exp(x), whose forward also does ``keep(ctx, x, y)``."""

    class Op(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            keep(ctx, x, y)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            (y,) = ctx.saved_tensors
            return grad * y

    return Op


def on(**values: Callable[[torch.Tensor, torch.Tensor], Any]) -> Callable[..., None]:
    """Sets attributes of ctx to functions of x and y."""

    def keep(ctx: Any, x: torch.Tensor, y: torch.Tensor) -> None:
        for name, value in values.items():
            setattr(ctx, name, value(x, y))

    return keep


class Largest(Function):
    """The largest element and its place, which has no gradient."""

    @staticmethod
    def forward(ctx, x):
        value, place = x.max(-1)
        ctx.shape, ctx.place = x.shape, place
        ctx.mark_non_differentiable(place)
        return value, place

    @staticmethod
    def backward(ctx, grad, _):
        return grad.new_zeros(ctx.shape).scatter(-1, ctx.place[..., None], grad[..., None])


def test_an_output_without_a_gradient_closes_no_circle(probed: Probed) -> None:
    (finding,) = probed(RULE, Largest, torch.stack([X, 2 * X])).findings
    assert (finding.severity, finding.message) == (
        "info",
        "`ctx.place` holds the output `output[1]` after backward",
    )


@pytest.mark.parametrize(
    ("keep", "attribute"),
    [
        (on(y=lambda x, y: y), "ctx.y"),
        (on(cache=lambda x, y: {"out": [y]}), "ctx.cache['out'][0]"),
        (on(state=lambda x, y: SimpleNamespace(y=y)), "ctx.state.y"),
    ],
)
def test_output_on_ctx_is_a_circle(probed: Probed, keep: Any, attribute: str) -> None:
    (finding,) = probed(RULE, keeping(keep), X).findings
    assert finding.message == f"`{attribute}` holds `output`: the graph outlives its last user"
    assert finding.severity == "warning"
    assert finding.cause == "reference-cycle"
    assert gc.isenabled()


def test_detached_output_on_ctx_is_no_circle(probed: Probed) -> None:
    (finding,) = probed(RULE, keeping(on(y=lambda x, y: y.detach())), X).findings
    assert finding.message == "`ctx.y` holds the output `output` after backward"
    assert finding.severity == "warning"


def test_input_on_ctx_is_a_warning(probed: Probed) -> None:
    outcome = probed(RULE, keeping(on(x=lambda x, y: x)), X)
    assert [f.message for f in outcome.findings] == ["`ctx.x` holds the input `x` after backward"]
    assert outcome.verdict == "fail"


def test_intermediate_on_ctx_is_a_note(probed: Probed) -> None:
    outcome = probed(RULE, keeping(on(mask=lambda x, y: x > 0)), X)
    assert [f.severity for f in outcome.findings] == ["info"]
    assert outcome.verdict == "pass"


def test_constants_and_plain_values_pass(probed: Probed) -> None:
    keep = on(shape=lambda x, y: x.shape, one=lambda x, y: torch.ones(()), n=lambda x, y: 3)
    assert probed(RULE, keeping(keep), X).findings == []


def test_tensors_of_an_object_that_the_caller_has_pass(probed: Probed) -> None:
    held = SimpleNamespace(weights=torch.ones(3))
    assert probed(RULE, keeping(on(graph=lambda x, y: held)), X).findings == []


def test_what_backward_frees_passes(probed: Probed) -> None:
    class Op(keeping(on(x=lambda x, y: x))):  # type: ignore[misc]
        @staticmethod
        def backward(ctx, grad):
            ctx.x = None
            (y,) = ctx.saved_tensors
            return grad * y

    assert probed(RULE, Op, X).findings == []


def test_outputs_kept_elsewhere_outlive_the_call(probed: Probed) -> None:
    kept = []

    class Keeps(torch.nn.Module):
        def forward(self, x):
            self.last = x.exp()
            return self.last

    def keeps(x: torch.Tensor) -> torch.Tensor:
        kept.append(Function_.apply(x))
        return kept[-1]

    Function_ = keeping(on())
    (finding,) = probed(RULE, keeps, X).findings
    assert "outlives its outputs" in finding.message
    assert finding.severity == "info"
    assert [f.severity for f in probed(RULE, Keeps(), X).findings] == ["info"]


def test_without_a_python_function_it_is_skipped(probed: Probed) -> None:
    assert probed(RULE, torch.exp, X).verdict == "skipped"
    assert probed(RULE, torch.nn.Linear(3, 2), X).verdict == "skipped"


class Context:
    """The context of a Function that is called by hand."""

    saved_tensors: tuple[torch.Tensor, ...] = ()

    def save_for_backward(self, *tensors: torch.Tensor) -> None:
        self.saved_tensors = tensors


class ExpInside(torch.autograd.Function):
    """exp, by an inner Function with a context of its own, which saves the output."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.inner = Context()
        y = x.exp()
        ctx.inner.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * ctx.inner.saved_tensors[0]


class ExpOnCtx(ExpInside):
    """exp, which keeps its output on ctx itself."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.y = x.exp()
        return ctx.y  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * ctx.y


@pytest.mark.parametrize("code", ["GL603", "GL604"])
@pytest.mark.parametrize(
    ("op", "severities"), [(ExpInside, {"info"}), (ExpOnCtx, {"error", "warning"})]
)
def test_what_a_function_inside_saved_is_information(
    op: Any, severities: set[str], code: str, probed: Probed
) -> None:
    outcome = probed(by_code(code), op, torch.tensor([0.5, -1.5, 2.5]))
    (finding,) = outcome.findings
    assert finding.severity in severities
    assert outcome.verdict == ("pass" if severities == {"info"} else "fail")
    told = "a Function inside saved it in a context of its own" in finding.cause_text
    assert told == (severities == {"info"})
