"""Arguments that are objects with methods, of classes beside the op."""

from __future__ import annotations

import abc
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import Function

import gradlint
from gradlint.inputs._gather import gather, objects_for
from gradlint.inputs.not_found import NoInputsFound
from gradlint.inputs.samples import samples_for
from gradlint.model.settings import Settings
from gradlint.targets.build import from_object
from gradlint.targets.own_objects import own_objects


class Linear(abc.ABC):
    """A linear map, by what it does to vectors."""

    @abc.abstractmethod
    def apply_to(self, x: Tensor) -> Tensor: ...

    @abc.abstractmethod
    def adjoint_to(self, y: Tensor) -> Tensor: ...


class Sum(Linear):
    """Takes two of its own kind: of all classes the simplest is made."""

    def __init__(self, left: Linear, right: Linear) -> None:
        self.left, self.right = left, right

    def apply_to(self, x: Tensor) -> Tensor:
        return self.left.apply_to(x) + self.right.apply_to(x)

    def adjoint_to(self, y: Tensor) -> Tensor:
        return self.left.adjoint_to(y) + self.right.adjoint_to(y)


class Differences(Linear):
    def __init__(self, step: float) -> None:
        self.step = step

    def apply_to(self, x: Tensor) -> Tensor:
        return x.diff(dim=-1) / self.step

    def adjoint_to(self, y: Tensor) -> Tensor:
        zero = y.new_zeros((*y.shape[:-1], 1))
        return (torch.cat([zero, y], -1) - torch.cat([y, zero], -1)) / self.step


class Annotated(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, operator: Linear) -> Tensor:
        ctx.operator = operator
        return operator.apply_to(x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return ctx.operator.adjoint_to(g), None


class AnnotatedWrongly(Annotated):
    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return -ctx.operator.adjoint_to(g), None


class Untold(Function):
    """Only its methods tell what the operator is."""

    @staticmethod
    def forward(ctx, x, operator):
        ctx.operator = operator
        return operator.apply_to(x)

    @staticmethod
    def backward(ctx, g):
        return ctx.operator.adjoint_to(g), None


class UntoldWrongly(Untold):
    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.operator.adjoint_to(g), None


class Scaled(Function):
    """It is passed the module that calls it."""

    @staticmethod
    def forward(ctx, x, owner):
        if not isinstance(owner, Scaling):
            raise TypeError("a module is needed, as it calls this")
        ctx.owner = owner
        return owner.table[owner.chosen] * x

    @staticmethod
    def backward(ctx, g):
        return ctx.owner.table[ctx.owner.chosen] * g, None


class ScaledWrongly(Scaled):
    @staticmethod
    def backward(ctx, g):
        return g, None


class Scaling(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.table = {"own": factor}
        self.chosen = "own"

    def forward(self, x: Tensor) -> Tensor:
        return Scaled.apply(x, self) + ScaledWrongly.apply(x, self)


class Unknown(Function):
    """No class beside it has the method."""

    @staticmethod
    def forward(ctx, x, operator):
        return operator.folded_into(x)

    @staticmethod
    def backward(ctx, g):
        return g, None


@pytest.mark.parametrize(
    ("op", "verdict", "made"),
    [
        (Annotated, "pass", Differences),
        (AnnotatedWrongly, "fail", Differences),
        (Untold, "pass", Differences),
        (UntoldWrongly, "fail", Differences),
        (Scaled, "pass", Scaling),
        (ScaledWrongly, "fail", Scaling),
    ],
)
def test_objects_of_own_classes_are_passed(op: type, verdict: str, made: type) -> None:
    built = from_object(op)
    first = samples_for(built, Settings())[0]
    assert type(first.args[1]) is made
    (target,) = gradlint.check(op, order=1).targets
    assert target.verdict == verdict
    wrong = {item.code for item in target.findings if item.severity == "error"}
    assert wrong == ({"GL401"} if verdict == "fail" else set())


def test_what_no_class_has_is_not_made_up() -> None:
    built = from_object(Unknown)
    assert objects_for(built) == {}
    with pytest.raises(NoInputsFound):
        samples_for(built, Settings())


def test_methods_of_tensors_and_modules_tell_no_class() -> None:
    assert list(own_objects(__name__, [], {"sum"}, {"sum"})) == []
    assert list(own_objects(__name__, [], {"forward"}, {"forward"})) == []
    found = list(own_objects(__name__, [], {"apply_to"}, {"apply_to", "step"}))
    assert [type(item) for item in found] == [Differences]
    assert found[0].step == 0.5
    assert list(own_objects(__name__, [], {"apply_to"}, {"apply_to", "absent"})) == []


# -- arguments that are called, and classes that documentation names ----------------------------


class Shift(nn.Module):
    def __init__(self, steps: int, factor: float) -> None:
        super().__init__()
        self.steps, self.factor = steps, factor

    def forward(self, x: Tensor, *, flipped: bool = False) -> Tensor:
        return self.factor * x.roll(-self.steps if flipped else self.steps, -1)


class Moved(Function):
    """Moves values around, or back.

    :param torch.Tensor x: values.
    :param Shift there: moves them.
    :param Shift back: moves them back.
    :param bool inverse: whether they are moved back.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, there: Any, back: Any, inverse: bool) -> Tensor:
        ctx.there, ctx.back, ctx.inverse = there, back, inverse
        return back(x, flipped=True) * (back.factor / there.factor) if inverse else there(x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None, None]:
        return Moved.apply(g, ctx.there, ctx.back, not ctx.inverse), None, None, None


class MovedWrongly(Moved):
    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None, None]:
        return -Moved.backward(ctx, g)[0], None, None, None


class Sloped(Function):
    """What backward reads of the function that it gets, no function has."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, f: Any) -> Tensor:
        ctx.f = f
        return f(x.detach())

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return g * ctx.f.slope, None


class Forgotten(Sloped):
    """What backward reads, forward has not kept."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return g * ctx.slope, None


@pytest.mark.parametrize(("op", "verdict"), [(Moved, "pass"), (MovedWrongly, "fail")])
def test_classes_that_documentation_names_are_passed(op: type, verdict: str) -> None:
    (target,) = gradlint.check(op, order=1, select=["GL0", "GL4"]).targets
    args = samples_for(from_object(op), Settings())[0].args
    assert [type(item) for item in args[1:3]] == [Shift, Shift]
    assert target.verdict == verdict
    assert [item.code for item in target.findings] == (["GL401"] if verdict == "fail" else [])


@pytest.mark.parametrize(("op", "raises"), [(Sloped, False), (Forgotten, True)])
def test_what_a_stand_in_lacks_is_no_fault_of_backward(op: type, raises: bool) -> None:
    (target,) = gradlint.check(op, order=1).targets
    assert ("GL004" in [item.code for item in target.findings]) is raises
    assert target.verdict == ("fail" if raises else "inconclusive")


def called(x: Tensor, f: Any) -> Tensor:
    return f(x)


def called_where_it_can_be(x: Tensor, f: Any) -> Tensor:
    return f(x) if callable(f) else f * x


def called_if_given(x: Tensor, f: Any = None) -> Tensor:
    return x if f is None else f(x)


@pytest.mark.parametrize(
    ("op", "some", "none"),
    [
        (called, {"callable"}, {"tensor", "float", "int", "bool", "str", "none"}),
        (called_where_it_can_be, {"callable", "tensor", "float"}, set()),
        (called_if_given, {"callable"}, {"tensor", "float", "int"}),
    ],
)
def test_what_is_called_is_no_number(op: Any, some: set[str], none: set[str]) -> None:
    (found,) = [item for item in gather(from_object(op)) if item.name == "f"]
    kinds = {kind for kind, _ in found.ordered_kinds()}
    assert some <= kinds
    assert not none & kinds
