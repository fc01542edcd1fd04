"""Each call of ``Function.apply`` is seen or counted, and answered as without it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import Function, function

from gradlint.recorded import apply_calls
from gradlint.recorded.apply_calls import can_be_seen, see_apply
from gradlint.recorded.looks import Seen

QUESTION = "_is_setup_context_defined"


class Old(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, factor: Any = 2.0) -> Any:
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.factor, None


class New(Function):
    @staticmethod
    def forward(x: Any, factor: Any = 2.0) -> Any:
        return x * factor

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.factor, None


class Heir(New):
    pass


class Looks:
    """Notes calls, and lets ``skip`` pass after each."""

    def __init__(self, skip: int) -> None:
        self.skip = skip
        self.seen: dict[type, Seen] = {}
        self.calls: list[tuple[type, int, dict[str, Any]]] = []

    def __call__(self, cls: type, args: Any, kwargs: dict[str, Any], frame: Any) -> Seen | None:
        self.calls.append((cls, len(args), dict(kwargs)))
        if cls.__module__.startswith("torch."):
            return None
        seen = self.seen.setdefault(cls, Seen({"attribute": cls.__qualname__}))
        seen.skip = self.skip
        return seen


@pytest.fixture(params=["known", "unknown"])
def looks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Looks:
    """torch is watched, as it is known, and as a version that asks otherwise."""
    monkeypatch.setattr(function, QUESTION, getattr(function, QUESTION))
    base = function._SingleLevelFunction  # type: ignore[attr-defined]
    monkeypatch.setattr(base, "setup_context", vars(base)["setup_context"])
    if request.param == "unknown":
        monkeypatch.setattr(apply_calls, "_does_what_is_known", lambda code: False)
    assert can_be_seen(function)
    found = Looks(0)
    see_apply(function, found)
    return found


def test_every_call_is_seen_once(looks: Looks) -> None:
    x = torch.ones(3, requires_grad=True)
    for _ in range(2):
        for cls in (Old, New, Heir):
            (grad,) = torch.autograd.grad(cls.apply(x, 3.0).sum(), x)
            assert grad.tolist() == [3.0] * 3
    assert [call[0] for call in looks.calls] == [Old, New, Heir] * 2
    assert {call[1] for call in looks.calls} == {2}


def test_calls_pass_until_the_next_look(looks: Looks) -> None:
    looks.skip = 3
    x = torch.ones(3)
    for _ in range(8):
        Old.apply(x)
        New.apply(x, 2.0)
    assert [call[0] for call in looks.calls] == [Old, New] * 2
    assert (looks.seen[Old].skip, looks.seen[New].skip) == (0, 0)


def test_the_answer_is_the_same(looks: Looks) -> None:
    question = getattr(function, QUESTION)
    assert question(New.setup_context) is True
    assert question(Old.setup_context) is False
    assert Old.setup_context is function._SingleLevelFunction.setup_context  # type: ignore[attr-defined]
    assert isinstance(
        vars(function._SingleLevelFunction)["setup_context"],  # type: ignore[attr-defined]
        staticmethod,
    )
    assert not looks.calls  # nothing was called


def test_under_a_transform(looks: Looks) -> None:
    found = torch.func.grad(lambda x: New.apply(x, 3.0).sum())(torch.ones(2))
    assert found.tolist() == [3.0, 3.0]
    assert looks.calls[0][0] is New
    with pytest.raises(RuntimeError, match="setup_context"):
        torch.func.grad(lambda x: Old.apply(x).sum())(torch.ones(2))
