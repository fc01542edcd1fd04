"""Arguments that are objects with methods, of classes beside the op."""

from __future__ import annotations

import abc
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import Function

import gradlint
from gradlint.inputs._gather import objects_for
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
