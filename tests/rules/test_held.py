"""What is held in memory between rules, and what is let go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import Function

from gradlint.api import _check_object
from gradlint.experiments.baseline_comparison import held_once
from gradlint.experiments.finite import extremes as _extremes
from gradlint.experiments.order import second_order as _shared
from gradlint.experiments.subject import READERS, Subject
from gradlint.model.resolve import resolve_settings
from gradlint.rules.catalogue import by_code, rule_names

X = torch.linspace(-1.5, 1.4, 7, dtype=torch.float64).requires_grad_()
NAN = float("nan")


class Sine(Function):
    """Keeps its input, as most Functions do."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, grad_output: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return grad_output * x.cos()


def test_readers_are_rules() -> None:
    for measurement, codes in READERS.items():
        assert hasattr(Subject, measurement)
        assert [code for code in codes if by_code(code) is None] == []


def test_nothing_that_was_let_go_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for module, name in ((_extremes, "make_extremes"), (_shared, "differentiate_twice")):
        measure = getattr(module, name)

        def counted(subject: Subject, name: str = name, measure: Any = measure) -> Any:
            made.append(name)
            return measure(subject)

        monkeypatch.setattr(module, name, counted)
    settings = resolve_settings({"seed": 1, "ignore": ["GL9"]}, rules=rule_names())
    (target,) = _check_object(Sine, (X,), settings).targets
    assert target.findings == []
    assert made == ["make_extremes", "differentiate_twice"]


def test_measurements_go_behind_their_last_reader(subject: Callable[..., Subject]) -> None:
    bound = subject(Sine, X)
    assert not bound.has("extremes")
    assert bound.extremes.reason == ""
    bound.let_go(["GL402", "GL501"])
    assert "extremes" in vars(bound)
    bound.let_go(["GL501"])
    assert "extremes" not in vars(bound)
    assert bound.has("extremes")
    assert not bound.has("twice")


def test_equal_gradients_are_held_once() -> None:
    known = [torch.tensor([1.0, NAN]), torch.tensor([2.0]), None, torch.tensor([3.0])]
    given = [torch.tensor([1.0, NAN]), torch.tensor([2.5]), torch.tensor([4.0]), None]
    found = held_once(given, known)
    assert found[0] is known[0]
    assert found[1] is not None
    assert found[1].tolist() == [2.5]
    assert found[1] is not given[1]
    assert found[2] is not None
    assert found[3] is None


def test_a_deterministic_op_has_one_gradient(subject: Callable[..., Subject]) -> None:
    bound = subject(Sine, X)
    baseline, guarded = bound.baseline, bound.guarded
    assert baseline is not None
    assert baseline.repeatable
    assert all(found[0] is baseline.gradients[0] for found in baseline.repeats)
    assert guarded.second is not None
    assert guarded.second[0] is guarded.first[0]
    assert guarded.added == {"output": 0}
    assert guarded.residual is None  # the cotangent and the gradient, in every bit


def test_an_op_that_is_not_deterministic_has_several(subject: Callable[..., Subject]) -> None:
    count = 0

    def drifts(x: torch.Tensor) -> torch.Tensor:
        nonlocal count
        count += 1
        return x * (1.0 + 1e-9 * count)

    baseline = subject(drifts, X).baseline
    assert baseline is not None
    assert not baseline.repeatable
    assert len({id(found[0]) for found in (baseline.gradients, *baseline.repeats)}) == 3


def test_extremes_hold_what_is_looked_at(subject: Callable[..., Subject]) -> None:
    found = subject(Sine, X).extremes
    assert {item.name for item in found.found} == {"zeros", "ties", "single", "large", "tiny"}
    for item in found.found:
        judged = item.name != "tiny"
        assert bool(item.outputs) == judged
        assert (item.gradients is not None) == judged
        (value,) = item.make()
        assert torch.equal(value, item.make()[0])
        if judged:
            assert torch.equal(item.outputs["output"], value.sin())


def test_a_tiny_value_with_a_gradient_that_is_not_finite_is_held(
    subject: Callable[..., Subject],
) -> None:
    class Root(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx: Any, grad_output: torch.Tensor) -> torch.Tensor:
            (x,) = ctx.saved_tensors
            return grad_output * x.cos() * (x * x) / (x * x)

    tiny = subject(Root, X).extremes.named("tiny")
    assert tiny is not None
    assert tiny.gradients is not None
    assert tiny.gradients[0] is not None
    assert tiny.gradients[0].isnan().all()
