"""Which results are kept in memory between rules, and which are released."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import Function

from gradlint.api import _check_object
from gradlint.experiments.baseline_comparison import make_baseline, share_equal_tensors
from gradlint.experiments.finite.extremes import make_extremes
from gradlint.experiments.order.second_order import differentiate_twice
from gradlint.experiments.state.guarded_run import make_guarded
from gradlint.experiments.subject import LARGE, Subject
from gradlint.model.resolve import resolve_settings
from gradlint.rules.catalogue import CATALOGUE, rule_names

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


def test_large_experiments_are_needed_by_a_rule() -> None:
    assert {make_extremes.__name__, differentiate_twice.__name__} == LARGE
    assert {need for rule in CATALOGUE for need in rule.needs} >= LARGE


def test_nothing_that_was_released_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    once = Subject.once

    def counting(self: Subject, make: Callable[[Subject], Any]) -> Any:
        @functools.wraps(make)
        def counted(subject: Subject) -> Any:
            made.append(make.__name__)
            return make(subject)

        return once(self, counted)

    monkeypatch.setattr(Subject, "once", counting)
    settings = resolve_settings({"seed": 1, "ignore": ["GL9"]}, rules=rule_names())
    (target,) = _check_object(Sine, (X,), settings).targets
    assert target.findings == []
    assert [name for name in made if name in LARGE] == ["make_extremes", "differentiate_twice"]


def test_large_results_are_released_after_their_last_reader(
    subject: Callable[..., Subject],
) -> None:
    bound = subject(Sine, X)
    assert not bound.made("make_extremes")
    first = bound.once(make_extremes)
    assert first.reason == ""
    bound.release({"make_extremes"})
    assert bound.once(make_extremes) is first
    bound.release(set())
    assert bound.made("make_extremes")
    assert bound.once(make_extremes) is not first
    assert not bound.made("differentiate_twice")


def test_equal_gradients_are_shared() -> None:
    known = [torch.tensor([1.0, NAN]), torch.tensor([2.0]), None, torch.tensor([3.0])]
    given = [torch.tensor([1.0, NAN]), torch.tensor([2.5]), torch.tensor([4.0]), None]
    found = share_equal_tensors(given, known)
    assert found[0] is known[0]
    assert found[1] is not None
    assert found[1].tolist() == [2.5]
    assert found[1] is not given[1]
    assert found[2] is not None
    assert found[3] is None


def test_a_deterministic_op_has_one_gradient(subject: Callable[..., Subject]) -> None:
    bound = subject(Sine, X)
    baseline, guarded = bound.once(make_baseline), bound.once(make_guarded)
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

    baseline = subject(drifts, X).once(make_baseline)
    assert baseline is not None
    assert not baseline.repeatable
    assert len({id(found[0]) for found in (baseline.gradients, *baseline.repeats)}) == 3


def test_extremes_hold_what_is_looked_at(subject: Callable[..., Subject]) -> None:
    found = subject(Sine, X).once(make_extremes)
    assert {item.name for item in found.points} == {"zeros", "ties", "single", "large", "tiny"}
    for item in found.points:
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

    tiny = subject(Root, X).once(make_extremes).named("tiny")
    assert tiny is not None
    assert tiny.gradients is not None
    assert tiny.gradients[0] is not None
    assert tiny.gradients[0].isnan().all()
