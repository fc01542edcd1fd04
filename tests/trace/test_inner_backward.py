"""Layers whose backward runs a backward pass of its own through a module that they hold, so that
the gradients of the weights are left in ``.grad``: right ones, and one with a planted fault."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gradlint.checking.examine import examine
from gradlint.inputs._infer import infer
from gradlint.model.events import Confirmable, Found, TorchVerdictMade
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.targets.build import from_object
from gradlint.trace.problem import Problem


class Recomputed(torch.autograd.Function):
    """Calls a module in backward again, as reversible layers do."""

    @staticmethod
    def forward(ctx, x, inner, factor):
        ctx.save_for_backward(x)
        ctx.inner, ctx.factor = inner, factor
        return inner(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            own = x.detach().requires_grad_()
            torch.autograd.backward(ctx.inner(own), ctx.factor * grad_output)
        return own.grad, None, None


class Layer(torch.nn.Module):
    """The weights are used inside of the Function, and the bias beside it as well."""

    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.inner = torch.nn.Linear(3, 3)  # in float32, as modules are
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Recomputed.apply(x, self.inner, self.factor) + self.inner.bias


def sample() -> Sample:
    torch.manual_seed(5)
    return Sample("s", "given", (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),))


def test_gradients_left_in_grad_are_those_of_the_weights() -> None:
    bound = Problem(from_object(Layer()), sample())
    v = torch.randn(4, 3, dtype=torch.float64)
    x = bound.values()[0]
    weight = bound.values()[1]
    for _ in range(2):
        gradients = bound.pull({"output": v})
        assert bound.fills_grad
        assert bound.written_grads == set()
        for found, expected in zip(gradients, (v @ weight, v.mT @ x, 2.0 * v.sum(0)), strict=True):
            assert found is not None
            torch.testing.assert_close(found, expected)


def test_backward_reads_the_values_of_the_call() -> None:
    """Not those with which the module was made."""
    bound = Problem(from_object(Layer()), sample())
    x, weight, bias = (1.5 * value for value in bound.values())
    v = torch.randn(4, 3, dtype=torch.float64)
    found = bound.pull({"output": v}, [x, weight, bias])[0]
    assert found is not None
    torch.testing.assert_close(found, v @ weight)


@pytest.mark.parametrize(("factor", "expected"), [(1.0, []), (0.5, ["GL401"])])
def test_it_is_judged(factor: float, expected: list[str]) -> None:
    events: list[Any] = []
    settings = Settings(select=("GL0", "GL1", "GL4", "GL601"), ignore=("GL110",), seed=1)
    examine(from_object(Layer(factor)), [sample()], settings, events.append)
    found = [event.finding for event in events if isinstance(event, Found)]
    assert sorted({item.code for item in found if item.severity == "error"}) == expected
    asked = [event.verdict for event in events if isinstance(event, TorchVerdictMade)]
    assert {verdict.verdict for verdict in asked} <= {"skipped"}
    told = [event for event in events if isinstance(event, Confirmable)]
    assert [event.reason for event in told] == ["its backward leaves gradients in `.grad`"]


def test_inputs_are_inferred_in_float64() -> None:
    """An attempt gives the module's weights that dtype in backward, too."""
    (first, *_) = infer(from_object(Layer()), seed=1)
    assert first.args[0].dtype == torch.float64
    assert first.args[0].shape[-1] == 3
    assert not any("refused float64" in note for note in first.notes)
