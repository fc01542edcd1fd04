"""What one call reaches of the user's code: statements, ways through a line, and masks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import Function

from gradlint.model.sample import Sample
from gradlint.targets.build import from_object
from gradlint.trace.coverage import NOT_PYTHON, Coverage
from gradlint.trace.problem import Problem
from gradlint.trace.record import record
from tests.trace.covered import coverage_of_call, unreached

LINES = Path(__file__).read_text(encoding="utf-8").splitlines()


def reduced(g: Tensor, reduction: str) -> Tensor:
    if reduction == "sum":
        return g * 2  # only for a sum
    return g


class Scale(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, reduction: str = "none", limit: float = 1.0) -> Tensor:
        if x.dim() > 9:
            raise ValueError("too many dimensions")
        ctx.reduction, ctx.limit = reduction, limit
        ctx.save_for_backward(x)
        return torch.where(x > limit, x, reduced(x, reduction))

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        if ctx.reduction == "sum":
            g = torch.where(x > ctx.limit, g, g * 2)  # backward of a sum
        return g * 1.0 if ctx.limit < 100 else g, None, None


class WithSetup(Function):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.shape = output.shape

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g * 2


class Layer(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            return x * 2  # training
        x = x * 3  # evaluation
        return through(x)  # through


def through(x: Tensor) -> Tensor:
    return WithSetup.apply(x)  # type: ignore[no-any-return]


def reached(op: Any, *args: Any) -> Coverage:
    return coverage_of_call(from_object(op), Sample("s", "given", args))


def input(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64).requires_grad_()


def missed(coverage: Coverage) -> set[str]:
    """Comments on the lines that were not reached, or what is said of a way."""
    return {text or LINES[line - 1].partition("  # ")[2] for _, line, text in unreached(coverage)}


def test_statements_and_ways_that_never_ran() -> None:
    found = reached(Scale, input(0.5, 2.0))
    assert missed(found) == {"only for a sum", "backward of a sum", "`ctx.limit < 100` false"}
    phases = {(item.name, item.phase) for item in found.functions()}
    assert phases == {("forward", "forward"), ("backward", "backward"), ("reduced", "forward")}


def test_a_sum_reaches_more() -> None:
    none, total = reached(Scale, input(0.5, 2.0)), reached(Scale, input(0.5, 2.0), "sum")
    new = {LINES[line - 1].partition("  # ")[2] for _, line, text in total.places() - none.places()}
    assert {"only for a sum", "backward of a sum"} <= new
    both = Coverage(from_object(Scale))
    for args in ((input(0.5, 2.0),), (input(0.5, 2.0), "sum"), (input(0.5, 2.0), "none", 1e3)):
        record(Problem(from_object(Scale), Sample("s", "given", args)), both)
    assert both.full
    assert unreached(both) == frozenset()


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ((0.5, 2.0), set()),
        ((2.0, 3.0), {"`x > limit` false", "`x > ctx.limit` false"}),
        ((0.5, -3.0), {"`x > limit` true", "`x > ctx.limit` true"}),
    ],
)
def test_masks(values: tuple[float, ...], wanted: set[str]) -> None:
    found = reached(Scale, input(*values), "sum")
    assert {text for text in missed(found) if "x >" in text} == wanted


def test_a_module_and_the_function_in_it() -> None:
    layer = Layer()
    assert missed(reached(layer, input(1.0, 2.0))) == {"evaluation", "through"}
    found = reached(layer.eval(), input(1.0, 2.0))
    assert missed(found) == {"training"}
    assert [(item.name, item.phase) for item in found.functions()] == [
        ("forward", "forward"),
        ("through", "forward"),
        ("forward", "forward"),
        ("setup_context", "forward"),
        ("backward", "backward"),
    ]


def test_a_backward_that_does_not_run_counts() -> None:
    x = torch.tensor([0.5, 2.0], dtype=torch.float64)
    found = reached(Scale, x)
    backward = next(item for item in found.functions() if item.name == "backward")
    assert backward.ran == []
    assert len(backward.lines) == 4


def test_backward_in_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU the engine calls backward in a thread of its own; here the call moves to one."""
    op = from_object(through)
    coverage = Coverage(op)
    problem = Problem(op, Sample("s", "given", (input(1.0, 2.0),)))
    before = problem.backward

    def in_a_thread(*args: Any, **kwargs: Any) -> Any:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(before, *args, **kwargs).result()

    monkeypatch.setattr(problem, "backward", in_a_thread)
    assert record(problem, coverage).error is None
    assert ("backward", "backward") in {(i.name, i.phase) for i in coverage.functions()}


@pytest.mark.parametrize("op", [torch.relu, torch.nn.functional.gelu, nn.Linear(2, 2).double()])
def test_code_of_torch_is_not_watched(op: Any) -> None:
    found = reached(op, input(1.0, 2.0))
    assert found.functions() == []
    assert found.note == NOT_PYTHON
    assert found.full


def test_a_call_that_raises_has_reached_what_ran() -> None:
    found = reached(Scale, "not a tensor")
    forward = next(item for item in found.functions() if item.name == "forward")
    assert len(forward.ran) == 1


def test_nothing_stays_behind() -> None:
    before: Callable[..., Any] | None = sys.gettrace()
    reached(Scale, input(1.0, 2.0))
    assert sys.gettrace() is before
    assert torch.overrides._get_current_function_mode_stack() == []
