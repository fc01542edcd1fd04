"""GL806 on the CPU: offsets beyond 2³¹ elements, with the memory of a few."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

from gradlint.experiments.device.far_apart import FarRun, far_apart, run_far_apart
from gradlint.experiments.device.interpreted_kernels import has_loop, kernels_that_run
from gradlint.experiments.subject import Subject
from gradlint.rules.device import index_overflow

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="maps memory as Linux does")


@pytest.fixture(autouse=True)
def interpreted_function(monkeypatch: pytest.MonkeyPatch) -> Any:
    """In the place of Triton's class of that name."""

    class InterpretedFunction:
        fn = staticmethod(has_loop)

        def rewrite(self) -> str:
            return "rewritten"

    module = SimpleNamespace(InterpretedFunction=InterpretedFunction)
    monkeypatch.setitem(sys.modules, "triton.runtime.interpreter", module)
    return InterpretedFunction


X = torch.tensor([[0.7, -1.3, 2.1, 0.4], [-0.2, 1.6, -2.4, 0.9], [1.1, -0.6, 0.3, -1.8]])


def rows_of(x: Tensor, bits: int) -> Tensor:
    """The rows of ``x``, read where offsets in so many bits lead."""
    found = torch.empty(x.shape, dtype=x.dtype)
    for row in range(len(x)):
        offset = row * x.stride(0)
        wrapped = (offset + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
        start = x.data_ptr() + wrapped * x.element_size()
        ctypes.memmove(found[row].data_ptr(), start, x.shape[1] * x.element_size())
    return found


def square(bits_forward: int, bits_backward: int) -> type[Function]:
    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return rows_of(x, bits_forward) ** 2

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return 2 * x * rows_of(g, bits_backward)

    return Square


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_values_lie_beyond_the_limit_and_are_the_same(dtype: torch.dtype) -> None:
    far = far_apart(X.to(dtype))
    assert far is not None
    assert torch.equal(far, X.to(dtype))
    assert far.stride(1) == 1
    assert far.stride(0) < 2**31 < 2 * far.stride(0)


def test_a_middle_axis_is_spread_where_the_first_is_short() -> None:
    x = torch.arange(24.0).view(2, 3, 4)
    far = far_apart(x)
    assert far is not None
    assert torch.equal(far, x)
    assert far.stride(1) * 2 > 2**31


@pytest.mark.parametrize("shape", [(2, 2), (), (1, 2), (3, 2**18)])
def test_what_cannot_be_spread_is_left(shape: tuple[int, ...]) -> None:
    assert far_apart(torch.ones(shape)) is None


@pytest.mark.parametrize(("bits", "wrong"), [((32, 64), "output"), ((64, 32), "x")])
def test_an_offset_that_wraps_around(
    subject: Callable[..., Subject], bits: tuple[int, int], wrong: str
) -> None:
    bound = subject(square(*bits), X)
    found = run_far_apart(bound)
    assert (found.reason, found.loops) == ("", [])
    assert found.offset > 2**31
    outcome = index_overflow.judged_far_apart(bound, found)
    assert outcome.verdict == "fail"
    (finding,) = outcome.findings
    assert wrong in (finding.output, finding.input)
    assert finding.severity == "error"
    assert finding.index is not None
    assert finding.index[0] == 2  # the row beyond the limit


def test_right_ops_pass(subject: Callable[..., Subject]) -> None:
    for op in (square(64, 64), torch.sin, lambda x: x.softmax(-1), lambda x: x.sum(0)):
        bound = subject(op, X)
        found = run_far_apart(bound)
        assert (found.reason, found.outputs, found.gradients) == ("", [], [])
        assert index_overflow.judged_far_apart(bound, found).verdict == "pass"


def test_strides_that_are_ignored_are_left_to_others(subject: Callable[..., Subject]) -> None:
    class Dense(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return torch.as_strided(x, x.shape, (4, 1)) * 1

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return g

    class DenseGradient(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return torch.as_strided(g, g.shape, (4, 1)) * 1

    for op in (Dense, DenseGradient):
        assert "already wrong" in run_far_apart(subject(op, X)).reason


def test_a_kernel_with_a_loop_is_not_accused(subject: Callable[..., Subject]) -> None:
    bound = subject(square(32, 64), X)
    found = run_far_apart(bound)
    found.loops = ["_backward"]
    outcome = index_overflow.judged_far_apart(bound, found)
    assert (outcome.verdict, outcome.findings) == ("inconclusive", [])
    assert "`_backward` has a loop" in outcome.note
    right = FarRun(loops=["_backward"], offset=2**31)
    assert index_overflow.judged_far_apart(bound, right).verdict == "pass"


def test_without_triton_nothing_is_tried(
    subject: Callable[..., Subject], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    assert index_overflow.probe(subject(square(32, 64), X)).verdict == "skipped"
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setitem(sys.modules, "triton", SimpleNamespace())
    assert index_overflow.probe(subject(square(32, 64), X)).verdict == "fail"


def test_kernels_are_noted_as_they_run(
    interpreted_function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kernels_that_run() as ran:
        assert interpreted_function().rewrite() == "rewritten"
    assert ran == [has_loop]
    interpreted_function().rewrite()
    assert ran == [has_loop]
    monkeypatch.setitem(sys.modules, "triton.runtime.interpreter", SimpleNamespace())
    with kernels_that_run() as ran:
        assert ran is None


def looping(n: int) -> int:
    total = 0
    for k in range(n):
        total += k
    return total


def test_loops_are_found_in_the_source() -> None:
    assert has_loop(looping)
    assert not has_loop(test_loops_are_found_in_the_source)
