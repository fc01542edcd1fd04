"""Kinds of arguments that no sample gives."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import Function

import gradlint
from gradlint.checking.not_tried import not_tried
from gradlint.model.sample import Sample
from gradlint.targets.build import from_object
from gradlint.trace.coverage import Coverage
from gradlint.trace.problem import Problem
from gradlint.trace.record import record


def convolve(
    x: Tensor,
    n: int,
    stride: int = 1,
    padding: tuple[int, int] = (0, 0),
    mask: Any = None,
    causal: bool = False,
    reduction: str = "mean",
    dtype: Any = None,
) -> Tensor:
    return x * n


def conjugated(x: Tensor) -> Tensor:
    return x * x.conj()


def filtered(x: Tensor) -> Tensor:
    return torch.fft.irfft(torch.fft.rfft(x).conj(), n=x.shape[-1])


class Layer(nn.Module):
    def __init__(self, part: nn.Module | None = None) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if self.part is None else self.part(x) * 1.0


X = torch.tensor([1.0, 2.0], dtype=torch.float64).requires_grad_()
Z = torch.tensor([1.0, 2.0], dtype=torch.complex128).requires_grad_()


def words(
    op: Any, *calls: tuple[Any, ...], moved: tuple[str, ...] = (), **kwargs: Any
) -> list[str]:
    loaded = from_object(op)
    samples = [Sample(str(k), "given", args, dict(kwargs)) for k, args in enumerate(calls)]
    coverage = Coverage(loaded)
    for sample in samples:
        record(Problem(loaded, sample), coverage)
    coverage.moved.update(moved)
    return not_tried(loaded, samples, coverage)


def test_arguments_that_never_left_their_default() -> None:
    assert words(convolve, (X, 3)) == [
        "stride != 1",
        "padding != (0, 0)",
        "mask != None",
        "causal=True",
        "reduction != 'mean'",
    ]


@pytest.mark.parametrize(
    "calls",
    [
        [(X, 3, 2, (1, 0), X, True, "sum")],  # a flag has two values, and only one was given
        [(X, 3), (X, 3, 2, (1, 0), X, True, "sum")],
    ],
)
def test_one_sample_off_the_default_is_enough(calls: list[tuple[Any, ...]]) -> None:
    assert words(convolve, *calls) == (["causal=False"] if len(calls) == 1 else [])


@pytest.mark.parametrize(("n", "wanted"), [(0, "n != 0"), (1, "n != 1"), (2, None)])
def test_a_neutral_number_without_default(n: int, wanted: str | None) -> None:
    assert (words(convolve, (X, n))[0] == wanted) is (wanted is not None)


def test_given_by_keyword() -> None:
    found = words(convolve, (X, 3), stride=2)
    assert "stride != 1" not in found
    assert "causal=True" in found


def test_arguments_that_a_check_moved() -> None:
    assert "stride != 1" not in words(convolve, (X, 3), moved=("stride",))


def test_complex_only_where_the_code_speaks_of_it() -> None:
    assert words(conjugated, (X,)) == ["complex"]
    assert words(filtered, (X,)) == []
    assert words(conjugated, (X,), (Z,)) == []
    assert words(conjugated, (X,), moved=("complex",)) == []
    assert "complex" not in words(convolve, (X, 3))


def test_the_other_mode_of_a_module() -> None:
    assert words(Layer(nn.Dropout(0.5)), (X,)) == ["evaluation mode"]
    assert words(Layer(nn.Dropout(0.5)).eval(), (X,)) == ["training mode"]
    assert words(Layer(nn.ReLU()), (X,)) == []


class Strided(Function):
    """It takes no stride but 1."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, stride: int = 1, full: bool = True) -> Tensor:
        if stride != 1:
            raise ValueError("only 1 is supported")
        ctx.full = full
        return x * 2 if full else x * 3

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        if ctx.full:
            return g * 2, None, None
        return g * 3, None, None


def test_what_further_samples_try_is_not_said() -> None:
    report = gradlint.check(Strided, (X,), seed=0, select=["GL1", "GL401"])
    (target,) = report.targets
    assert [item.label for item in target.tried if item.verdict == "right"] != []
    assert target.not_tried == ["stride != 1"]
    assert target.coverage["backward"].full
    assert not target.uncovered


class Limited(Function):
    """A cube within a limit, of which backward knows the default alone."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, limit: float = 2.0) -> Tensor:
        y = x**3
        ctx.save_for_backward(x, y)
        return y.clamp(-limit, limit)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        x, y = ctx.saved_tensors
        return g * 3 * x * x * (y.abs() <= 2.0), None


def test_a_number_at_which_the_gradient_is_wrong_was_tried() -> None:
    x = torch.tensor([-1.2, -0.4, 0.3, 1.21], dtype=torch.float64).requires_grad_()
    report = gradlint.check(Limited, [(x,)], seed=0, order=1, select=["GL401"]).targets[0]
    (found,) = report.findings
    assert found.message == "wrong gradient for `x` where `limit` is 1.63"
    assert not any("limit" in text for text in report.not_tried)
