"""Ops made from formulas."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch

from gradlint.expressions.limits import ExpressionError
from gradlint.spec._formula import Program, function_class, plain_callable, reference_callable
from gradlint.spec.load import loads

X = torch.tensor([0.5, -1.5, 2.0], dtype=torch.float64, requires_grad=True)
Y = torch.tensor([1.0, 0.25, -3.0], dtype=torch.float64, requires_grad=True)


def made(text: str, **options: Any) -> type[torch.autograd.Function]:
    inputs = "inputs: {x: {shape: [3]}, y: {shape: [3]}, k: 2.0, m: {shape: [3], optional: true}}"
    return function_class(Program(loads(f"{text}\n{inputs}")), "Formula", **options)


PRODUCT = 'forward: "x * y * k"\nbackward: {x: "grad_output * y * k", y: "grad_output * x * k"}'


def test_values_and_gradients() -> None:
    apply = made(PRODUCT).apply
    out = apply(X, Y, 2.0, None)
    torch.testing.assert_close(out, X * Y * 2)
    assert torch.autograd.gradcheck(lambda x, y: apply(x, y, 2.0, None), (X, Y))
    assert torch.autograd.gradgradcheck(lambda x, y: apply(x, y, 2.0, None), (X, Y))


def test_class() -> None:
    function = made(PRODUCT)
    assert issubclass(function, torch.autograd.Function)
    assert function.__name__ == "Formula"
    assert list(inspect.signature(function.forward).parameters) == ["x", "y", "k", "m"]
    assert type(function.apply(X, Y, 2.0, None).grad_fn).__name__ == "FormulaBackward"


def test_the_backward_that_is_written_is_the_one_that_runs() -> None:
    wrong = made('forward: "x * y"\nbackward: {x: "grad_output * 7"}').apply
    x, y = torch.autograd.grad(wrong(X, Y, 1, None).sum(), (X, Y), allow_unused=True)
    assert x.tolist() == [7, 7, 7]
    assert y is None


def test_outputs_and_their_gradients() -> None:
    function = made(
        'forward: "(exp(x), x * y)"\n'
        'backward: {x: "grad_outputs[0] * outputs[0] + grad_outputs[1] * y",'
        ' y: "grad_outputs[1] * x"}'
    )

    def call(x: torch.Tensor, y: torch.Tensor) -> Any:
        return function.apply(x, y, 1, None)

    assert torch.autograd.gradcheck(call, (X, Y))
    assert torch.autograd.gradgradcheck(call, (X, Y))
    first = made('forward: "exp(x)"\nbackward: {x: "grad_output * output"}').apply
    assert torch.autograd.gradgradcheck(lambda x: first(x, Y, 1, None), (X,))


def test_integer_outputs_are_marked() -> None:
    function = made('forward: "(x * 2, argsort(x))"\nbackward: {x: "grad_output * 2"}')
    values, order = function.apply(X, Y, 1, None)
    assert values.requires_grad
    assert not order.requires_grad
    assert torch.autograd.grad(values.sum(), X)[0].tolist() == [2, 2, 2]


def test_lets_are_shared_and_lazy() -> None:
    function = made(
        'forward: "s * x"\n'
        'let: {s: "sigmoid(x)", bad: "x @ ones(99)", slope: "grad_output * s * (1 + x - x * s)"}\n'
        'backward: {x: "slope"}'
    )
    assert torch.autograd.gradgradcheck(lambda x: function.apply(x, Y, 1, None), (X,))


def test_only_what_backward_needs_is_saved() -> None:
    out = made('forward: "x * y"\nbackward: {x: "grad_output * y"}').apply(X, Y, 1, None)
    assert [tensor.data_ptr() for tensor in out.grad_fn.saved_tensors] == [Y.data_ptr()]
    out = made('forward: "exp(x)"\nbackward: {x: "grad_output * output"}').apply(X, Y, 1, None)
    assert [tensor.data_ptr() for tensor in out.grad_fn.saved_tensors] == [out.data_ptr()]


def test_optional_inputs_are_none() -> None:
    apply = made(
        'forward: "x if m is None else x * m"\n'
        'backward: {x: "grad_output if m is None else grad_output * m", m: "grad_output * x"}'
    ).apply
    assert torch.equal(apply(X, Y, 1, None), X)
    assert torch.equal(apply(X, Y, 1, Y), X * Y)


def test_once_differentiable() -> None:
    function = made(
        'forward: "x * x"\nbackward: {x: "2 * x * grad_output"}', once_differentiable=True
    )
    v = torch.ones(3, dtype=torch.float64, requires_grad=True)
    (grad,) = torch.autograd.grad(function.apply(X, Y, 1, None), X, v, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex128])
def test_made_tensors_follow_dtype(dtype: torch.dtype) -> None:
    apply = made('forward: "x + ones(3)"\nbackward: {x: "grad_output * ones(3)"}').apply
    x = X.detach().to(dtype).requires_grad_()
    out = apply(x, Y, 1, None)
    assert out.dtype == dtype
    assert torch.autograd.grad(out.sum().abs(), x)[0].dtype == dtype


def test_failures_name_the_part_of_the_formula() -> None:
    apply = made('forward: "x + ones(4)"\nbackward: {x: "grad_output"}').apply
    with pytest.raises(ExpressionError, match=r"`x \+ ones\(4\)` failed: RuntimeError"):
        apply(X, Y, 1, None)


def test_without_backward_autograd_differentiates() -> None:
    spec = loads('forward: "sin(x) * y"\ninputs: {x: {shape: [3]}, y: {shape: [3]}}')
    call = plain_callable(Program(spec), "Sine")
    assert call.__name__ == "Sine"
    torch.testing.assert_close(call(X, y=Y), X.sin() * Y)
    assert torch.autograd.gradgradcheck(call, (X, Y))


def test_random_numbers_are_torchs_own() -> None:
    spec = loads('forward: "x * bernoulli(0.5 * ones(3))"\ninputs: {x: {shape: [3]}}')
    call = plain_callable(Program(spec), "Drop")
    torch.manual_seed(0)
    first = call(X)
    torch.manual_seed(0)
    assert torch.equal(call(X), first)


def _op(x: Any, weight: Any = None, *rest: Any, scale: float = 2.0) -> None: ...


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda f: f(X), X * 2.0),
        (lambda f: f(X, scale=3.0), X * 3.0),
        (lambda f: f(x=X, scale=1.0), X),
    ],
)
def test_reference_takes_the_arguments_of_the_op(
    call: Callable[[Callable[..., Any]], Any], expected: torch.Tensor
) -> None:
    spec = loads('op: a:b\nreference: "x * scale"\ninputs: {x: {shape: [3]}, scale: 1.0}')
    reference = reference_callable(Program(spec), inspect.signature(_op))
    assert torch.equal(call(reference), expected)


def test_vmap_and_func() -> None:
    apply = made(PRODUCT).apply
    batch = torch.stack([X.detach(), Y.detach()])
    out = torch.func.vmap(lambda x: apply(x, Y.detach(), 2.0, None))(batch)
    torch.testing.assert_close(out, batch * Y * 2)
    grad = torch.func.grad(lambda x: apply(x, Y.detach(), 2.0, None).sum())(X.detach())
    torch.testing.assert_close(grad, 2 * Y.detach())
