"""Live objects: signatures, declarations, modules that have to be constructed."""

from __future__ import annotations

import enum
import functools
import math
from typing import ClassVar, Literal, Optional

import pytest
import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from gradlint.base.errors import TargetError
from gradlint.model.op import Intent
from gradlint.targets.build import from_object


def careless(function):
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


class Declared(Function):  # gradlint: ignore[GL503, GL202] first order by contract
    surrogate: ClassVar = {"x": "grad_output"}
    stochastic = True
    gradlint_ignore: ClassVar = {"GL401": "known", "nonsense": "dropped"}

    @staticmethod
    def forward(ctx, x, *rest, scale=1.0):
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g

    @staticmethod
    def sample_inputs():
        return (torch.ones(2),)


class Setup(Function):
    @staticmethod
    def forward(x, weight=None):
        return x

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    @careless
    @once_differentiable
    def vjp(ctx, g):
        return g, None


class Hidden(Function):
    @staticmethod
    @careless
    def forward(ctx, x, eps: float = 1e-5, mode=math.pi, *rest):
        return x

    def backward(ctx, g):
        return g, None, None


class ByClass(Function):
    @classmethod
    def forward(cls, ctx, x, k=None):
        return x

    @classmethod
    def backward(cls, ctx, g):
        return g, None


def test_declarations():
    op = from_object(Declared)
    assert op.intent == Intent({"x": "grad_output"}, True, True)
    assert op.ignores == {
        "GL503": "first order by contract",
        "GL202": "first order by contract",
        "GL401": "known",
    }
    assert op.sample_inputs()[0].shape == (2,)
    assert op.target.endswith("test_from_object:Declared")
    assert op.notes == []


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (Declared, "(x, *rest, scale=1.0)"),
        (Setup, "(x, weight=None)"),
        (Hidden, f"(x, eps: float = 1e-05, mode={math.pi}, *rest)"),
        (ByClass, "(x, k=None)"),
    ],
)
def test_signatures_are_without_ctx(function, expected):
    assert str(from_object(function).signature) == expected


def test_once_differentiable_is_seen_through_wrappers():
    assert from_object(Setup).intent.once_differentiable
    assert not from_object(Hidden).intent.once_differentiable


def test_missing_staticmethod_is_noted():
    assert from_object(Hidden).notes == ["`backward` is not a @staticmethod"]


@pytest.mark.parametrize("value", ["atan", {"x": 3}, {}, nn.ReLU])
def test_surrogates_of_other_libraries_are_left_alone(value):
    class Op(Function):
        surrogate = value

        @staticmethod
        def forward(ctx, x):
            return x

    assert from_object(Op).intent.surrogate is None


def test_class_of_a_test_can_be_given():
    class Local(Function):
        @staticmethod
        def forward(ctx, x):
            return x

    op = from_object(Local, name="mine")
    assert (op.name, op.target) == ("mine", "mine")
    assert op.location.file.endswith("test_from_object.py")


def test_samples_given_as_data():
    class Op(Function):
        sample_inputs = (1, 2)

        @staticmethod
        def forward(ctx, x):
            return x

    assert from_object(Op).sample_inputs() == (1, 2)


def test_property_that_raises_is_no_declaration():
    class Layer(nn.Module):
        @property
        def surrogate(self):
            raise RuntimeError

        def forward(self, x):
            return x

    assert from_object(Layer()).intent.surrogate is None


@pytest.mark.parametrize("thing", [3, "text", None, enum.Enum, dict, math, torch.ones(2)])
def test_what_is_no_operator(thing):
    with pytest.raises(TargetError):
        from_object(thing)


def test_op_is_handed_through():
    op = from_object(torch.sin)
    assert from_object(op) is op


def test_partial_of_apply_keeps_the_names():
    op = from_object(functools.partial(Setup.apply, torch.ones(1)))
    assert list(op.signature.parameters) == ["weight"]


class Mode(enum.Enum):
    SOFT = "soft"


class Named(nn.Module):
    def __init__(self, in_features, out_features, num_heads, dropout, bias, activation, eps):
        super().__init__()
        self.inner = nn.Linear(in_features, out_features, bias)
        self.activation, self.heads = activation, out_features // num_heads
        assert isinstance(activation, nn.Module)
        assert 0 <= dropout < 1
        assert 0 < eps < 1e-2


class Annotated(nn.Module):
    def __init__(
        self,
        size: tuple[int, int],
        kind: Literal["a", "b"],
        mode: Mode,
        width: Optional[int],  # noqa: UP045
        *,
        flag: bool,
        rate: float,
        init: torch.Tensor,
        body: nn.Module,
    ):
        super().__init__()
        assert len(size) == 2
        assert kind == "a"
        assert mode is Mode.SOFT
        assert isinstance(width, int)
        assert flag is True
        assert isinstance(rate, float)
        assert isinstance(init, torch.Tensor)
        assert isinstance(body, nn.Module)


class Tied(nn.Module):
    def __init__(self, channels, outputs):
        super().__init__()
        if channels != outputs or channels % 8:
            raise ValueError("tied")


class Axis(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim


class Width(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(abs(dim)))


class HandsOn(Named):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)


class Called(nn.Module):
    def __init__(self, table, limit):
        super().__init__()
        self.limit = {"low": 1, "high": limit}[table]


def make_called():
    return Called("high", 9), Big(512, 4096)


class Big(nn.Module):
    def __init__(self, codes, width):
        super().__init__()


class Abstract(nn.Module):
    def __init__(self, config):
        raise TypeError


class Inside(nn.Module):
    def __init__(self, part: Abstract):
        super().__init__()


@pytest.mark.parametrize(
    ("cls", "chosen"),
    [
        (nn.Tanh, {}),
        (nn.Linear, {"in_features": 4, "out_features": 3}),
        (Tied, {"channels": 8, "outputs": 8}),
        (Axis, {"dim": -1}),
        (Width, {"dim": 4}),
        (Called, {"table": "high", "limit": 9}),
        (Big, {"codes": 4, "width": 3}),
        (Inside, {"part": 4}),
        (nn.GRU, {"input_size": 4, "hidden_size": 3}),
    ],
)
def test_constructor_arguments_are_guessed(cls, chosen):
    op = from_object(cls)
    assert op.kind == "module"
    assert op.constructor == chosen
    assert bool(op.notes) == bool(chosen)
    for name, value in chosen.items():
        assert f"{name}={value!r}" in op.notes[0]


@pytest.mark.parametrize("cls", [Named, Annotated, HandsOn])
def test_constructor_arguments_fit_names_and_annotations(cls):
    assert isinstance(from_object(cls).module, cls)


def test_construction_is_the_same_every_time_and_leaves_the_seed_alone():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    one, two = (from_object(nn.Linear).module for _ in range(2))
    assert torch.equal(one.weight, two.weight)
    assert torch.equal(torch.rand(1), expected)


def test_overload_with_tensors_stands_for_the_op():
    assert list(from_object(torch.ops.aten.add).signature.parameters) == ["self", "other", "alpha"]


def test_compiled_module_shows_the_one_inside():
    op = from_object(torch.compile(nn.Linear(2, 3)))
    assert (op.name, list(op.signature.parameters)) == ("Linear", ["input"])


def test_script_function_has_its_arguments():
    def double(x: torch.Tensor, k: int = 2) -> torch.Tensor:
        return x * k

    op = from_object(torch.jit.script(double), name="double")
    assert (op.kind, op.target) == ("callable", "double")
    assert str(op.signature.parameters["k"]) == "k: int = 2"
