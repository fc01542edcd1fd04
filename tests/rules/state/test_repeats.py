"""GL606, GL607 and GL608: calls that should not know of each other."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import Function

from gradlint.model.rule import Outcome
from gradlint.rules.state.nondeterministic import RULE as GL606
from gradlint.rules.state.state_shared_between_calls import RULE as GL608
from gradlint.rules.state.uninitialised_memory import RULE as GL607

Probed = Callable[..., Outcome]

X = torch.tensor([0.7, -1.3, 2.1, 0.4])


def scaled(factor: Callable[[], float]) -> type:
    """x ↦ x², with a gradient that is ``factor()`` times the right one."""

    class Op(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.square()

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad * factor()

    return Op


def counting(*factors: float) -> Callable[[], float]:
    """``factors`` in turn, the last one for ever."""
    values = itertools.chain(factors, itertools.repeat(factors[-1]))
    return lambda: next(values)


# -- GL606 -----------------------------------------------------------------------------------------


def test_changing_gradient_is_a_warning(probed: Probed) -> None:
    turns = itertools.cycle([1.0, 1.1])
    outcome = probed(GL606, scaled(lambda: next(turns)), X)
    (finding,) = outcome.findings
    assert finding.message == "the gradient for `x` changes between identical calls"
    assert finding.severity == "warning"
    assert outcome.verdict == "fail"


def test_first_call_that_differs_is_an_error(probed: Probed) -> None:
    (finding,) = probed(GL606, scaled(counting(2.0, 1.0)), X).findings
    assert finding.message == "the gradient for `x` changes after the first call"
    assert (finding.severity, finding.cause) == ("error", "first-call")


def test_last_bits_are_a_note(probed: Probed) -> None:
    turns = itertools.cycle([1.0, 1.0 + 1e-14])
    outcome = probed(GL606, scaled(lambda: next(turns)), X)
    assert [f.severity for f in outcome.findings] == ["info"]
    assert "in the last bits" in outcome.findings[0].message
    assert outcome.verdict == "pass"


def test_output_that_no_seed_controls(probed: Probed) -> None:
    system = random.SystemRandom()
    outcome = probed(GL606, lambda x: x + system.random(), X)
    assert [f.output for f in outcome.findings] == ["output"]


def test_later_call_that_raises(probed: Probed) -> None:
    def once() -> float:
        if seen:
            raise ValueError("used up")
        seen.append(1)
        return 1.0

    seen: list[int] = []
    (finding,) = probed(GL606, scaled(once), X).findings
    assert finding.message.startswith("backward raises in an identical later call: ValueError")


@pytest.mark.parametrize(
    "op",
    [
        scaled(lambda: 1.0),
        torch.nn.Dropout(0.5),
        lambda x: x * random.random(),
        lambda x: x.std() / x,
    ],
)
def test_steady_ops_pass(probed: Probed, op: Any) -> None:
    assert told(probed(GL606, op, X)) == []


def told(outcome: Outcome) -> list[str]:
    return [finding.message for finding in outcome.findings]


# -- GL607 -----------------------------------------------------------------------------------------


def filling(start: int, make: Callable[..., torch.Tensor], where: str) -> type:
    """x ↦ x², that writes gradient (or output) from ``start`` on into ``make(x)``."""

    def fill(x: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        found = make(x)
        found[start:] = value[start:]
        return found

    class Op(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return fill(x, x.square()) if where == "output" else x.square()

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            value = 2 * x * grad
            return value if where == "output" else fill(x, value)

    return Op


@pytest.mark.parametrize("where", ["output", "gradient"])
@pytest.mark.parametrize("make", [torch.empty_like, lambda x: x.new_empty(x.shape)])
def test_memory_that_nobody_wrote(probed: Probed, where: str, make: Any) -> None:
    outcome = probed(GL607, filling(1, make, where), X)
    assert outcome.verdict == "fail"
    assert any("1 of 4 elements" in text and where in text for text in told(outcome))
    assert probed(GL607, filling(0, make, where), X).verdict == "pass"


def test_flags_are_put_back(probed: Probed) -> None:
    before = torch.are_deterministic_algorithms_enabled()
    probed(GL607, filling(1, torch.empty_like, "gradient"), X)
    assert torch.are_deterministic_algorithms_enabled() == before
    assert torch.utils.deterministic.fill_uninitialized_memory


def test_deterministic_algorithms_alone_are_no_fault(probed: Probed) -> None:
    def other(x: torch.Tensor) -> torch.Tensor:
        return x * (2 if torch.are_deterministic_algorithms_enabled() else 3)

    assert told(probed(GL607, other, X)) == []


# -- GL608 -----------------------------------------------------------------------------------------


class OnClass(Function):
    @staticmethod
    def forward(ctx, x):
        OnClass.x = x.detach().clone()
        return x.square()

    @staticmethod
    def backward(ctx, grad):
        return 2 * OnClass.x * grad


class Stack(Function):
    stack: list[torch.Tensor] = []  # noqa: RUF012

    @staticmethod
    def forward(ctx, x):
        Stack.stack.append(x.detach().clone())
        return x.square()

    @staticmethod
    def backward(ctx, grad):
        return 2 * Stack.stack.pop() * grad


class Number(Function):
    @staticmethod
    def forward(ctx, x, scale):
        Number.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx, grad):
        return grad * Number.scale, None


@pytest.mark.parametrize("op", [OnClass, Stack])
def test_state_outside_of_ctx(probed: Probed, op: type) -> None:
    assert told(probed(GL608, op, X)) == [
        "the gradient for `x` changes after a later call of the op"
    ]


def test_number_outside_of_ctx(probed: Probed) -> None:
    assert len(told(probed(GL608, Number, X, 3.0))) == 1


def test_workspaces_that_are_handed_out_twice(probed: Probed) -> None:
    workspace = torch.empty(4, dtype=torch.float64)

    class Output(Function):
        @staticmethod
        def forward(ctx, x):
            return torch.mul(x.detach(), 2, out=workspace).detach()

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    class Gradient(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return workspace.copy_(grad * 2).detach()

    assert told(probed(GL608, Output, X)) == [
        "`output` is overwritten by a later call of the op: 4 of 4 elements"
    ]
    assert told(probed(GL608, Gradient, X)) == [
        "the gradient for `x` changes after the backward of another call"
    ]


@pytest.mark.parametrize(
    ("op", "args"),
    [
        (torch.nn.BatchNorm1d(4), (torch.randn(5, 4, generator=torch.Generator().manual_seed(0)),)),
        (torch.linalg.cholesky, (torch.eye(3) * 2 + 0.1,)),
        (torch.nn.functional.dropout, (X, 0.5)),
        (torch.log, (X.abs(),)),
        (scaled(lambda: 1.0), (X,)),
    ],
)
def test_calls_that_do_not_know_of_each_other_pass(probed: Probed, op: Any, args: Any) -> None:
    assert probed(GL608, op, *args).verdict == "pass"


@pytest.mark.parametrize("rule", [GL607, GL608], ids=lambda rule: rule.code)
def test_nondeterministic_ops_are_left_to_their_rule(probed: Probed, rule: Any) -> None:
    turns = itertools.cycle([1.0, 1.5, 2.5])
    outcome = probed(rule, scaled(lambda: next(turns)), X)
    assert outcome.verdict == "skipped"
    assert "GL606" in outcome.note
