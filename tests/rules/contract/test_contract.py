"""GL1: planted faults and near misses for the contract of backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code

GL101, GL102, GL103, GL104 = (by_code(code) for code in ("GL101", "GL102", "GL103", "GL104"))

X = torch.tensor([0.7, -1.2, 2.0])
W = torch.tensor([0.4, 1.5, -0.8])


def scaled(backward: Callable[..., Any], **more: Any) -> Any:
    """y = x·w·k with the given backward."""

    def forward(ctx: Any, x: Tensor, w: Tensor, k: Any = 1.0) -> Tensor:
        ctx.save_for_backward(x, w)
        ctx.k = k
        return x * w * k

    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Op", (Function,), methods | more)


def gradients(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
    x, w = ctx.saved_tensors
    return g * w * ctx.k, g * x * ctx.k


# -- GL101: wrong number of gradients ----------------------------------------------------------


@pytest.mark.parametrize(
    ("backward", "args", "message", "left_out"),
    [
        (gradients, (X, W, 2.0), "2 gradients for 3 arguments: none for `k`", "k"),
        (lambda ctx, g: g, (X, W), "1 gradient for 2 arguments: none for `w`", "w"),
        (lambda ctx, g: (g, g, g, g), (X, W, 2.0), "4 gradients for 3 arguments", None),
        (lambda ctx, g: (), (X, W), "0 gradients for 2 arguments: none for `x`, `w`", "x"),
        (lambda ctx, g: None, (X, W), "1 gradient for 2 arguments: none for `w`", "w"),
    ],
)
def test_wrong_count_names_the_arguments(
    probed: Callable[..., Outcome],
    backward: Callable[..., Any],
    args: tuple[Any, ...],
    message: str,
    left_out: str | None,
) -> None:
    outcome = probed(GL101, scaled(backward), *args)
    (finding,) = outcome.findings
    assert outcome.verdict == "fail"
    assert finding.message == f"backward returned {message}"
    assert finding.input == left_out


def test_the_argument_left_out_is_told_by_shapes(probed: Callable[..., Outcome]) -> None:
    class Op(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, eps: float, bias: Tensor) -> Tensor:
            return x * eps + bias

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            return g, g.sum(0)

    (finding,) = probed(GL101, Op, torch.randn(4, 3), 0.5, torch.randn(3)).findings
    assert finding.input == "eps"
    assert finding.help == "return 3 values, in the order of forward: x, eps, bias; None for eps"


def test_finding_points_at_the_executed_return(probed: Callable[..., Outcome]) -> None:
    class Op(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, k: float) -> Tensor:
            return x * k

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            if g.numel() > 100:
                return g, None
            return g * 2.0  # here

    (finding,) = probed(GL101, Op, X, 2.0).findings
    assert finding.location is not None
    assert finding.excerpt is not None
    text = dict(finding.excerpt.lines)[finding.location.line]
    assert text.endswith("# here")
    start, end = finding.location.column, finding.location.end_column
    assert end is not None
    assert text[start - 1 : end - 1] == "g * 2.0"


def test_surplus_nones_pass_with_a_note(probed: Callable[..., Outcome]) -> None:
    outcome = probed(GL101, scaled(lambda ctx, g: (*gradients(ctx, g), None, None)), X, W)
    assert outcome.verdict == "pass"
    assert outcome.note == "2 surplus None at the end, accepted by PyTorch"


@pytest.mark.parametrize("args", [(X, W), (X, W, 3.0)])
def test_defaults_that_were_not_passed_need_no_gradient(
    probed: Callable[..., Outcome], args: tuple[Any, ...]
) -> None:
    count = len(args)
    op = scaled(lambda ctx, g: (*gradients(ctx, g), None)[:count])
    assert probed(GL101, op, *args).verdict == "pass"


def test_arguments_of_varargs_are_counted_one_by_one(probed: Callable[..., Outcome]) -> None:
    class Op(Function):
        @staticmethod
        def forward(ctx: Any, *tensors: Tensor) -> Tensor:
            return torch.stack(tensors).sum(0)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            return g, g

    (finding,) = probed(GL101, Op, X, W, X).findings
    assert finding.input == "tensors[2]"


def test_functions_inside_of_a_callable_are_named(probed: Callable[..., Outcome]) -> None:
    inner = scaled(lambda ctx, g: g)

    def op(x: Tensor) -> Tensor:
        return inner.apply(x, torch.ones_like(x)) * 2

    (finding,) = probed(GL101, op, X).findings
    assert finding.message == "backward returned 1 gradient for 2 arguments: none for `w of Op`"


def test_ops_without_python_backward_are_skipped(probed: Callable[..., Outcome]) -> None:
    for rule in (GL101, GL102, GL103, GL104):
        assert probed(rule, torch.sin, X).verdict == "skipped"


# -- GL102: gradient for a non-tensor ------------------------------------------------------------


@pytest.mark.parametrize("extra", [0, torch.ones(()), False])
def test_gradient_for_a_number_is_found(probed: Callable[..., Outcome], extra: Any) -> None:
    op = scaled(lambda ctx, g: (*gradients(ctx, g), extra))
    (finding,) = probed(GL102, op, X, W, 2.0).findings
    assert finding.input == "k"
    assert finding.message == "gradient returned for `k`, which is not a tensor"


def test_exchanged_order_is_suspected(probed: Callable[..., Outcome]) -> None:
    op = scaled(lambda ctx, g: (gradients(ctx, g)[0], None, gradients(ctx, g)[1]))
    (finding,) = probed(GL102, op, X, W, 2.0).findings
    assert "meant for `x` or `w`" in finding.help


@pytest.mark.parametrize("value", [2.0, None, "text"])
def test_none_for_a_number_passes(probed: Callable[..., Outcome], value: Any) -> None:
    op = scaled(lambda ctx, g: (g, g, None), forward=staticmethod(lambda ctx, x, w, k: x + w))
    assert probed(GL102, op, X, W, value).verdict == "pass"


def test_gradient_for_an_integer_tensor_passes(probed: Callable[..., Outcome]) -> None:
    op = scaled(lambda ctx, g: (*gradients(ctx, g), g))
    assert probed(GL102, op, X, W, torch.tensor(2)).verdict == "pass"


# -- GL103: missing gradient ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returned", "blamed", "severities"),
    [
        (lambda a, b: (a, None), ["w"], ["warning"]),
        (lambda a, b: (None, b), ["x"], ["error"]),
        (lambda a, b: (None, None), ["x", "w"], ["error", "error"]),
    ],
)
def test_missing_gradient_is_found(
    probed: Callable[..., Outcome],
    returned: Callable[..., Any],
    blamed: list[str],
    severities: list[str],
) -> None:
    outcome = probed(GL103, scaled(lambda ctx, g: returned(*gradients(ctx, g))), X, W)
    assert outcome.verdict == "fail"
    assert [finding.input for finding in outcome.findings] == blamed
    assert [finding.severity for finding in outcome.findings] == severities


def with_second(formula: Callable[[Tensor, Tensor], Tensor], name: str = "w") -> Any:
    """y = formula(x, w), whose backward returns a gradient for x only."""
    source = f"def forward(ctx, x, {name}):\n    ctx.save_for_backward(x, {name})\n"
    source += f"    return formula(x, {name})\n"
    space: dict[str, Any] = {"formula": formula}
    exec(source, space)

    def backward(ctx: Any, g: Tensor) -> Any:
        x, w = (t.detach() for t in ctx.saved_tensors)
        with torch.enable_grad():
            leaf = x.requires_grad_()
            (grad,) = torch.autograd.grad(formula(leaf, w), leaf, g)
        return grad, None

    methods = {"forward": staticmethod(space["forward"]), "backward": staticmethod(backward)}
    return type("Op", (Function,), methods)


@pytest.mark.parametrize(
    "formula",
    [
        lambda x, w: x * torch.round(w),
        lambda x, w: x * (w > 0),
        lambda x, w: x * torch.floor(w * 100),
        lambda x, w: x + 0 * w,
        lambda x, w: x * w.numel(),
        lambda x, w: torch.where(w > 0, x, 2 * x),
        lambda x, w: x[w.argsort()],
    ],
)
def test_piecewise_constant_dependence_is_no_finding(
    probed: Callable[..., Outcome], formula: Callable[..., Tensor]
) -> None:
    outcome = probed(GL103, with_second(formula), X, W)
    assert outcome.verdict == "pass"
    assert outcome.findings == []
    assert outcome.note == "None for w, on which no output depends smoothly"


@pytest.mark.parametrize(
    "formula", [lambda x, w: x + 1e-5 * w, lambda x, w: x * torch.exp(w), lambda x, w: x - w.mean()]
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_weak_but_smooth_dependence_is_found(
    probed: Callable[..., Outcome], formula: Callable[..., Tensor], dtype: torch.dtype
) -> None:
    outcome = probed(GL103, with_second(formula), X, W, dtype=dtype)
    assert [finding.input for finding in outcome.findings] == ["w"]


@pytest.mark.parametrize(
    "name", ["target", "soft_labels", "running_mean", "attn_mask", "gtBox", "knots"]
)
def test_constants_by_name_are_a_note(probed: Callable[..., Outcome], name: str) -> None:
    outcome = probed(GL103, with_second(lambda x, w: x * w, name), X, W)
    assert outcome.verdict == "pass"
    assert [finding.severity for finding in outcome.findings] == ["info"]


def test_frozen_inputs_need_no_gradient(probed: Callable[..., Outcome]) -> None:
    op = with_second(lambda x, w: x * w)
    assert probed(GL103, op, X.clone().requires_grad_(), W).verdict == "pass"
    assert probed(GL103, op, X.clone().requires_grad_(), W).note == ""


def test_masked_infinities_do_not_hide_the_slope(probed: Callable[..., Outcome]) -> None:
    def formula(x: Tensor, w: Tensor) -> Tensor:
        return (x * w).masked_fill(torch.tensor([True, False, False]), float("-inf"))

    outcome = probed(GL103, with_second(formula), X, W)
    assert [finding.input for finding in outcome.findings] == ["w"]


def test_a_random_op_is_one_function(probed: Callable[..., Outcome]) -> None:
    def formula(x: Tensor, w: Tensor) -> Tensor:
        return x * torch.rand(3, dtype=x.dtype) + torch.round(w)

    assert probed(GL103, with_second(formula), X, W).findings == []


# -- GL104: gradient that is not a tensor --------------------------------------------------------


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (1.0, "gradient for `w` is not a tensor but a float"),
        (X.numpy(), "gradient for `w` is not a tensor but a ndarray"),
        (torch.Size([3]), "gradient for `w` is not a tensor but a Size"),
        (3, "gradient for `w` is not a tensor but an int"),
    ],
)
def test_gradient_that_is_no_tensor(
    probed: Callable[..., Outcome], second: Any, message: str
) -> None:
    (finding,) = probed(GL104, scaled(lambda ctx, g: (g, second)), X, W).findings
    assert finding.message == message
    assert finding.input == "w"


def test_list_instead_of_tuple_is_one_finding(probed: Callable[..., Outcome]) -> None:
    op = scaled(lambda ctx, g: list(gradients(ctx, g)))
    (finding,) = probed(GL104, op, X, W).findings
    assert finding.message == "backward returned a list instead of a tuple"
    for rule in (GL101, GL102, GL103):
        assert probed(rule, op, X, W).findings == []


def test_none_and_tensors_pass(probed: Callable[..., Outcome]) -> None:
    assert probed(GL104, scaled(lambda ctx, g: (g, None)), X, W).verdict == "pass"
    single = scaled(lambda ctx, g: g, forward=staticmethod(lambda ctx, x: x * 1))
    assert probed(GL104, single, X).verdict == "pass"
