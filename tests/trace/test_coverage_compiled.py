"""Coverage of code in whose file ``torch.compile`` is called."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from gradlint.model.sample import Sample
from gradlint.targets.build import from_object
from gradlint.trace.coverage import COMPILED
from tests.trace.covered import coverage_of_call, unreached

X = torch.tensor([1.0, 2.0], dtype=torch.float64).requires_grad_()


def function(x: Tensor) -> Tensor:
    return x * 2


compiled = torch.compile(function, backend="eager")


class CallsCompiled(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        return compiled(torch.where(x > 0, x, x))

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        if g.dim() == 9:
            return g
        return g * 2


def test_a_compiled_function_is_not_watched() -> None:
    found = coverage_of_call(from_object(compiled), Sample("s", "given", (X,)))
    assert (found.note, found.functions()) == (COMPILED, [])


def test_what_calls_a_compiled_function_is_watched_without_masks() -> None:
    op = from_object(CallsCompiled)
    found = coverage_of_call(op, Sample("s", "given", (X,)))
    first = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    op.call(X)  # nothing is compiled again without the watch
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == first
    missing = sorted(text for _, _, text in unreached(found))
    assert missing == [""]
    assert len(unreached(found)) == 1
