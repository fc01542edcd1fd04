"""Modules and scripted functions among the arguments of an op."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import Function

import gradlint
from gradlint.experiments.subject import Subject
from gradlint.inputs._infer import infer
from gradlint.inputs.stand_ins import ClosureModule
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import by_code
from gradlint.targets.build import from_object


class Reversible(Function):
    """y1 = x1 + F(x2), y2 = x2 + G(y1), as packages for reversible networks write it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, block: Any, other: Any, *weights: Tensor) -> Tensor:
        assert x.shape[1] % 2 == 0
        ctx.block, ctx.other = block, other
        with torch.no_grad():
            first, second = x.chunk(2, 1)
            first = first + block.forward(second)
            second = second + other.forward(first)
        ctx.save_for_backward(x)
        return torch.cat([first, second], 1)

    @staticmethod
    def gradients(ctx: Any, grad_output: Tensor) -> tuple[Any, ...]:
        (x,) = ctx.saved_tensors
        one, two = tuple(ctx.block.parameters()), tuple(ctx.other.parameters())
        with torch.enable_grad():
            held = x.detach().requires_grad_()
            first, second = held.chunk(2, 1)
            first = first + ctx.block(second)
            second = second + ctx.other(first)
            y = torch.cat([first, second], 1)
            found = torch.autograd.grad(y, (held, *one, *two), grad_output)
        return found[0], found[1 : 1 + len(one)], found[1 + len(one) :]

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Any, ...]:
        x, one, two = Reversible.gradients(ctx, grad_output)
        return (x, None, None, *one, *two)


class Forgotten(Reversible):
    """The weights get no gradients at all: too few are returned."""

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Any, ...]:
        assert list(ctx.block.parameters())
        x, _, _ = Reversible.gradients(ctx, grad_output)
        return x, None, None


class Plain(Reversible):
    """As Reversible; parameters are read in backward itself."""

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Any, ...]:
        count = len(list(ctx.block.parameters())) + len(list(ctx.other.parameters()))
        x, one, two = Reversible.gradients(ctx, grad_output)
        assert count == len(one) + len(two)
        return (x, None, None, *one, *two)


class Doubled(Reversible):
    """The gradients of the first module's weights are twice too large."""

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Any, ...]:
        count = len(list(ctx.block.parameters())) + len(list(ctx.other.parameters()))
        x, one, two = Reversible.gradients(ctx, grad_output)
        assert count == len(one) + len(two)
        return (x, None, None, *(2 * part for part in one), *two)


def verdicts(op: Any) -> dict[str, str]:
    loaded = from_object(op)
    sample = infer(loaded, 1)[0]
    subject = Subject(loaded, sample, Settings(seed=1))
    found = {}
    for code in ("GL004", "GL101", "GL103", "GL110", "GL401"):
        rule = by_code(code)
        assert rule is not None
        assert rule.probe is not None
        found[code] = rule.probe(subject).verdict
    return found


def test_modules_own_the_weights_that_follow() -> None:
    loaded = from_object(Plain)
    sample = infer(loaded, 1)[0]
    x, block, other, *weights = sample.args
    assert x.shape == (3, 4)
    assert (block, other) == (ClosureModule(3, 0, 2), ClosureModule(3, 1, 2))
    assert len(weights) == 2
    assert set(verdicts(Plain).values()) == {"pass"}


def test_their_wrong_gradients_are_found() -> None:
    assert verdicts(Doubled)["GL401"] == "fail"
    assert verdicts(Forgotten)["GL101"] == "fail"


def test_a_share_of_the_tensors_becomes_the_parameters() -> None:
    tensors = tuple(torch.full((k + 1,), float(k), requires_grad=True) for k in range(5))
    shares = [ClosureModule(3, place, 2).over(tensors) for place in range(2)]
    assert [len(list(module.parameters())) for module in shares] == [2, 3]
    assert all(a is b for a, b in zip(shares[1].parameters(), tensors[2:], strict=True))
    x = torch.ones(2, 3)
    y = shares[0](x)
    gradients = torch.autograd.grad(y.sum(), tuple(shares[0].parameters()))
    assert [bool((part != 0).all()) for part in gradients] == [True, True]
    one, two, three = ClosureModule(3, 0, 1, outputs=3).over(tensors)(x)
    assert torch.equal(one, 2 * two)
    assert torch.allclose(one, 3 * three)


class Affine(Function):
    """The module returns a scale and a shift."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, net: Any, *weights: Tensor) -> Tensor:
        ctx.net = net
        with torch.no_grad():
            scale, shift = net.forward(x)
            y = x * scale + shift
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Any, ...]:
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            held = x.detach().requires_grad_()
            scale, shift = ctx.net(held)
            y = held * scale + shift
            found = torch.autograd.grad(y, (held, *ctx.net.parameters()), grad_output)
        return (found[0], None, *found[1:])


def test_a_module_returns_as_many_tensors_as_are_unpacked() -> None:
    sample = infer(from_object(Affine), 1)[0]
    assert sample.args[1] == ClosureModule(2, 0, 1, outputs=2)
    assert repr(sample.args[1]) == "<module stand_in with 2 outputs>"
    assert set(verdicts(Affine).values()) == {"pass"}


@torch.jit.script
def scripted(x: Tensor, parts: list[Tensor], shift: Tensor, count: int, flag: bool) -> Tensor:
    for part in parts:
        x = x + part.sum()
    if flag:
        x = x * count
    return x + shift


class Scripted(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, parts: Any, offset: Any, count: Any, extra: Any) -> Tensor:
        ctx.count = count if extra else 1
        return scripted(x, parts, offset, count, extra)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        return g * ctx.count, None, None, None, None


def test_declared_types_say_what_to_pass() -> None:
    x, parts, offset, count, extra = infer(from_object(Scripted), 1)[0].args
    assert isinstance(x, Tensor)
    assert isinstance(parts, list)
    assert all(isinstance(part, Tensor) for part in parts)
    assert isinstance(offset, Tensor)
    assert (type(count), type(extra)) == (int, bool)


class Registered(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, amount: Any, axes: Any) -> Tensor:
        ctx.amount, ctx.axes = amount, axes
        return torch.ops.aten.roll.default(x, amount, axes)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        return torch.roll(g, [-k for k in ctx.amount], ctx.axes), None, None


@pytest.mark.parametrize("op", [Registered])
def test_those_of_registered_operators_too(op: Any) -> None:
    x, amount, axes = infer(from_object(op), 1)[0].args
    assert isinstance(x, Tensor)
    assert isinstance(amount, (tuple, list))
    assert isinstance(axes, (tuple, list))


class Mix(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, state: Tensor, w: Tensor, u: Tensor) -> Tensor:
        ctx.save_for_backward(x, state, w, u)
        return x @ w.t() + torch.tanh(state) @ u.t()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, ...]:
        x, state, w, u = ctx.saved_tensors
        seen = torch.tanh(state)
        return g @ w, (g @ u) * (1 - seen * seen), g.t() @ x, g.t() @ seen


class MixOfStates(Mix):
    """The gradient of ``u`` is that of a sum of states: right while they are zero."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, ...]:
        of_x, of_state, of_w, _ = Mix.backward(ctx, g)
        return of_x, of_state, of_w, g.t() @ ctx.saved_tensors[1]


class Mixer(nn.Module):
    function: type[Function] = Mix

    def __init__(self, features: int, units: int) -> None:
        super().__init__()
        self.units = units
        self.w = nn.Parameter(torch.randn(units, features))
        self.u = nn.Parameter(torch.randn(units, units))

    def forward(self, x: Tensor, state: Tensor | None = None) -> Any:
        if state is None:
            state = x.new_zeros(len(x), self.units)
        return self.function.apply(x, state, self.w, self.u)


class MixerOfStates(Mixer):
    function = MixOfStates


@pytest.mark.parametrize("units", [2, 3, 4, 5])
def test_a_state_gets_the_width_of_the_weight_where_the_batch_has_it_too(units):
    op = from_object(Mixer(4, units), name="Mixer")
    given = [sample for sample in infer(op, 0) if sample.label == "state given"]
    assert len(given) == 1
    x, state = given[0].args
    assert state.shape == (x.shape[0], units)
    assert x.shape[1] == 4


def test_a_fault_at_a_state_that_is_zero_by_default_is_found():
    flags: dict[str, Any] = {"seed": 0, "order": 1, "select": ["GL1", "GL2", "GL4"]}
    (wrong,) = gradlint.check(MixerOfStates, **flags).targets
    assert [item.sample for item in wrong.findings if item.code == "GL401"] == ["state given"]
    (right,) = gradlint.check(Mixer, **flags).targets
    assert right.verdict == "pass"


@dataclass
class State:
    """How an operator is set."""

    factor: float = 3.0

    def scaled(self, x: Tensor) -> Tensor:
        return self.factor * x


class Stateful(Function):
    """The default is the class, where an instance is meant."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, state: Any = State) -> Tensor:
        ctx.factor = state.factor
        return state.scaled(x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        return ctx.factor * g, None


def test_an_instance_in_place_of_a_class_that_is_the_default() -> None:
    sample = infer(from_object(Stateful))[0]
    assert sample.args[1] == State()
