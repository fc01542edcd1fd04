"""The instrumented run sees what backward returned, whatever the style of the Function."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import BackwardCFunction, _SingleLevelFunction, once_differentiable

from gradlint.model.sample import Sample, map_tensors
from gradlint.targets.build import from_object
from gradlint.trace.problem import Problem
from gradlint.trace.record import RunRecord, record

X = torch.tensor([0.7, -1.2, 2.0], dtype=torch.float64)


def run(op: Any, *args: Any, seed: int = 5) -> RunRecord:
    return record(problem(op, *args, seed=seed))


def problem(op: Any, *args: Any, seed: int = 5) -> Problem:
    def convert(tensor: Tensor) -> Tensor:
        moved = tensor.detach().clone()
        return moved.requires_grad_(moved.is_floating_point() or moved.is_complex())

    return Problem(from_object(op), Sample("s", "spec", map_tensors(args, convert)), seed=seed)


def double(ctx: Any, x: Tensor) -> Tensor:
    ctx.save_for_backward(x)
    return x * 2


def back(ctx: Any, g: Tensor) -> Tensor:
    return g * 2


def make(**methods: Any) -> Any:
    return type("Op", (Function,), methods)


def plain_decorator(function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


def wrapping_decorator(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


class Base(Function):
    forward = staticmethod(double)
    backward = staticmethod(back)


class Inherits(Base):
    pass


class CallsSuper(Base):
    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return Base.backward(ctx, g)


class NonStatic(Function):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2

    def backward(self, g: Tensor) -> Tensor:
        return g * 2


class ClassMethods(Function):
    @classmethod
    def forward(cls, ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @classmethod
    def backward(cls, ctx: Any, g: Tensor) -> Tensor:
        return g * 2


class WithSetup(Function):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def vjp(ctx: Any, g: Tensor) -> Tensor:
        return g * 2


STYLES = [
    Base,
    Inherits,
    CallsSuper,
    NonStatic,
    ClassMethods,
    WithSetup,
    make(forward=staticmethod(double), backward=staticmethod(once_differentiable(back))),
    make(forward=staticmethod(double), backward=staticmethod(wrapping_decorator(back))),
    make(forward=staticmethod(double), backward=staticmethod(plain_decorator(back))),
    make(forward=staticmethod(double), backward=staticmethod(functools.partial(back))),
    make(forward=staticmethod(double), vjp=staticmethod(back)),
]


@pytest.mark.parametrize("op", STYLES, ids=lambda op: op.__name__)
def test_every_style_of_function_is_seen(op: Any) -> None:
    before = {name: op.__dict__.get(name) for name in ("backward", "vjp", "apply")}
    seen = run(op, X)
    assert seen.error is None
    assert seen.own is not None
    assert seen.own.function is op
    assert seen.own.arguments == ("x",)
    assert seen.own.needs_input_grad == (True,)
    (cotangent,) = seen.cotangents.values()
    assert torch.equal(seen.own.grad_outputs[0], cotangent)
    assert torch.equal(seen.own.returned, cotangent * 2)
    assert seen.gradients is not None
    assert torch.equal(seen.gradients[0], cotangent * 2)
    assert seen.own.line is not None
    assert before == {name: op.__dict__.get(name) for name in before}


def test_line_of_the_innermost_return_is_known() -> None:
    line = back.__code__.co_firstlineno + 1
    for op in STYLES[6:]:
        own = run(op, X).own
        assert own is not None
        assert own.line == line, op


def test_the_executed_return_of_several_is_told() -> None:
    def backward(ctx: Any, g: Tensor) -> Any:
        if g.numel() > 100:
            return g
        if g.numel() > 2:
            return g * 2  # the one that runs
        return None

    own = run(make(forward=staticmethod(double), backward=staticmethod(backward)), X).own
    assert own is not None
    first = backward.__code__.co_firstlineno
    assert own.line is not None
    assert first + 4 <= own.line <= first + 6


def test_torch_is_left_as_it_was() -> None:
    apply, base = BackwardCFunction.apply, _SingleLevelFunction.__dict__.get("apply")
    run(Base, X)
    with pytest.raises(SystemExit):
        run(make(forward=staticmethod(double), backward=staticmethod(lambda c, g: sys.exit(3))), X)
    with pytest.raises(SystemExit):
        run(make(forward=staticmethod(lambda ctx, x: sys.exit(3))), X)
    assert BackwardCFunction.apply is apply
    assert _SingleLevelFunction.__dict__.get("apply") is base
    assert sys.getprofile() is None


def test_raw_returns_survive_the_engines_rejection() -> None:
    returned = (X, X, X)
    op = make(forward=staticmethod(double), backward=staticmethod(lambda ctx, g: returned))
    seen = run(op, X)
    assert seen.own is not None
    assert seen.own.returned is returned
    assert seen.own.raised is None
    assert seen.gradients is None
    assert seen.error is not None
    assert seen.error.phase == "backward"
    assert len(seen.outputs) == 1


def test_what_backward_raised_is_kept() -> None:
    def backward(ctx: Any, g: Tensor) -> Tensor:
        raise ValueError("no")

    seen = run(make(forward=staticmethod(double), backward=staticmethod(backward)), X)
    assert seen.own is not None
    assert isinstance(seen.own.raised, ValueError)
    assert seen.error is not None
    assert seen.error.error is seen.own.raised


def test_forward_that_raises_leaves_an_empty_record() -> None:
    seen = run(make(forward=staticmethod(lambda ctx, x: 1 / 0)), X)
    assert seen.error is not None
    assert seen.error.phase == "forward"
    assert isinstance(seen.error.error, ZeroDivisionError)
    assert seen.outputs == []
    assert seen.gradients is None
    assert seen.own is None


def test_arguments_are_known_by_kind() -> None:
    class Op(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, index: Tensor, scale: float, flag: bool = True) -> Tensor:
            return x[index] * scale

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            return torch.zeros(3, dtype=g.dtype), None, None

    own = run(Op, X, torch.tensor([0, 2]), 2.0).own
    assert own is not None
    assert own.arguments == ("x", "index", "scale")
    assert own.is_tensor == (True, True, False)
    assert own.needs_input_grad == (True, False, False)
    assert own.metas[0] is not None
    assert own.metas[1] is not None
    assert own.metas[0].shape == (3,)
    assert own.metas[1].dtype == torch.int64
    assert own.metas[2] is None
    assert own.leaves == (0, None, None)


def test_apply_bound_before_is_seen_inside_of_callables() -> None:
    bound = Base.apply

    def op(x: Tensor) -> Tensor:
        return bound(bound(x) + 1)

    seen = run(op, X)
    assert seen.own is None
    assert [node.function for node in seen.nodes] == [Base, Base]
    assert [node.leaves for node in seen.nodes] == [(None,), (0,)]
    assert all(node.metas[0] is not None for node in seen.nodes)


def test_in_place_function_on_a_view_is_seen() -> None:
    class AddOne(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.mark_dirty(x)
            return x.add_(1)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return g * 3

    def op(x: Tensor) -> Tensor:
        y = x * 1
        AddOne.apply(y[:2])
        return y

    seen = run(op, X)
    assert seen.error is None
    assert [node.function for node in seen.nodes] == [AddOne]
    assert seen.nodes[0].metas[0] is not None
    assert seen.nodes[0].metas[0].shape == (2,)


def test_several_outputs_get_several_cotangents() -> None:
    class Op(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Any:
            index = x.argsort()
            plain = x * 3
            ctx.mark_non_differentiable(index, plain)
            return x * 2, index, plain, x.sum()

        @staticmethod
        def backward(ctx: Any, g: Tensor, _: Any, __: Any, h: Tensor) -> Tensor:
            return g * 2 + h

    seen = run(Op, X)
    assert list(seen.cotangents) == ["output[0]", "output[3]"]
    assert seen.cotangents["output[3]"].shape == ()
    assert seen.error is None


def test_cotangents_are_signed_reproducible_and_fit() -> None:
    z = torch.randn(20, dtype=torch.complex64)
    first = run(torch.exp, z, seed=3).cotangents["output"]
    again = run(torch.exp, z, seed=3).cotangents["output"]
    other = run(torch.exp, z, seed=4).cotangents["output"]
    assert first.dtype == torch.complex64
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert (first.real > 0).any()
    assert (first.real < 0).any()
    assert (first.imag != 0).all()


def test_builtin_ops_have_gradients_but_no_raw_ones() -> None:
    seen = run(torch.sin, X)
    assert seen.nodes == []
    assert seen.gradients is not None
    assert torch.allclose(seen.gradients[0], X.cos() * seen.cotangents["output"])


def test_backward_in_another_thread_is_seen() -> None:
    seen: list[RunRecord] = []
    worker = threading.Thread(target=lambda: seen.append(run(Base, X)))
    worker.start()
    worker.join()
    assert seen[0].own is not None
    assert seen[0].own.line is not None


def test_unused_inputs_and_detached_outputs_are_no_error() -> None:
    assert run(lambda x, y: x * 2, X, X + 1).gradients[1] is None
    detached = run(lambda x: x.detach() * 2, X)
    assert detached.error is None
    assert detached.gradients == [None]
    assert detached.cotangents == {}


def test_saved_tensors_carry_names() -> None:
    class Op(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
            y = x * w
            ctx.save_for_backward(x, y, x + w, torch.arange(4))
            return y

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            return g, g

    saved = run(Op, X, X + 1).saved
    assert [name for name, _ in saved] == ["x", "output", "saved[0]", "saved[1]"]
    assert torch.equal(saved[2][1], 2 * X + 1)
    assert saved[3][1].dtype == torch.int64


def test_an_op_that_refuses_saved_tensor_hooks_is_recorded_all_the_same() -> None:
    def op(x: Tensor) -> Tensor:
        slope = torch.func.grad(lambda t: (t**3).sum())(x.detach())
        return x * slope

    seen = run(op, X)
    assert seen.error is None
    assert seen.gradients is not None
    assert seen.saved == []


def test_modules_name_their_parameters() -> None:
    layer = torch.nn.Linear(3, 2, dtype=torch.float64)
    bound = problem(layer, X[None])
    seen = record(bound)
    assert [item.name for item in bound.inputs] == ["input", "weight", "bias"]
    assert seen.gradients is not None
    assert [tuple(g.shape) for g in seen.gradients if g is not None] == [(1, 3), (2, 3), (2,)]


def test_registered_ops_name_their_arguments() -> None:
    @torch.library.custom_op("gradlint_record::scale", mutates_args=())
    def scale(x: Tensor, factor: float) -> Tensor:
        return x * factor

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.factor = inputs[1]

    def backward(ctx: Any, g: Tensor) -> Any:
        return g * ctx.factor, None

    scale.register_autograd(backward, setup_context=setup)
    seen = run(torch.ops.gradlint_record.scale, X, 2.0)
    assert seen.error is None
    (node,) = seen.nodes
    assert node.arguments[:2] == ("x", "factor")
    assert node.line == backward.__code__.co_firstlineno + 1
