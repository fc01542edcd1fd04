"""Inputs that can't be judged, or not well: each gets a clear answer, never a silent pass."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

import gradlint
from gradlint.model.report import Report


class Sin(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.cos()


def values(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()


def check(op: Any, *args: Any, **settings: Any) -> Report:
    """The report; the caller's own tensors must come out as they went in."""
    before = [item.detach().clone() for item in args]
    report = gradlint.check(op, args, seed=1, **settings)
    for item, copy in zip(args, before, strict=True):
        assert torch.equal(item.detach().nan_to_num(7.0), copy.nan_to_num(7.0))
        assert item.grad is None
    return report


def verdict(report: Report) -> str:
    return report.targets[0].verdict


def said(report: Report, code: str = "GL401") -> str:
    """The note of a check, which must stand in the text that is shown too."""
    (note,) = [item.note for item in report.targets[0].checks if item.code == code]
    shown = " ".join(str(report).split())
    assert " ".join(note.split()) in shown
    return note


@pytest.mark.parametrize(("bad", "name"), [(float("nan"), "nan"), (float("inf"), "inf")])
def test_inputs_that_are_not_finite(bad: float, name: str) -> None:
    report = check(Sin, torch.tensor([1.0, bad, 2.0], dtype=torch.float64))
    assert verdict(report) == "inconclusive"
    assert said(report).startswith(
        f"an input is not finite (`x` is {name} at [1]; give finite ones): nothing was judged"
    )


def test_an_infinite_element_with_a_finite_output_is_not_moved() -> None:
    report = check(torch.tanh, torch.tensor([1.0, float("inf"), 2.0], dtype=torch.float64))
    assert verdict(report) == "pass"
    (note,) = [item.note for item in report.targets[0].checks if item.code == "GL401"]
    assert note == "input: 1 of 3 elements are not finite and were not moved"


def test_nothing_marked_as_requiring_grad_means_all_that_can() -> None:
    report = check(Sin, torch.tensor([1.0, 2.0]))
    assert verdict(report) == "pass"
    assert report.targets[0].samples[0].args[0].requires_grad


@pytest.mark.parametrize("op", [Sin, lambda i: i * 2])
def test_integer_tensors_only(op: Any) -> None:
    report = check(op, torch.tensor([1, 2]))
    assert verdict(report) == "inconclusive"
    assert said(report) == (
        "no input requires grad: nothing was judged; give floating-point or complex tensors"
    )


@pytest.mark.parametrize(
    "overlapping",
    [
        lambda: values(3).detach().expand(4, 3),
        lambda: torch.as_strided(values(5).detach(), (3, 3), (1, 1)),
    ],
)
def test_elements_that_share_memory_get_places_of_their_own(
    overlapping: Callable[[], torch.Tensor],
) -> None:
    report = check(Sin, overlapping().requires_grad_())
    assert verdict(report) == "pass"
    assert report.targets[0].samples[0].notes == [
        "x: elements that shared memory were copied apart"
    ]


@pytest.mark.parametrize("plain", [lambda: values(3, 4), lambda: values(4, 3).mT, lambda: values()])
def test_elements_with_places_of_their_own_are_not_remarked(
    plain: Callable[[], torch.Tensor],
) -> None:
    report = check(Sin, plain().detach().requires_grad_(), order=1)
    assert report.targets[0].samples[0].notes == []


def test_empty_inputs_and_outputs() -> None:
    report = check(Sin, values(0, 3))
    assert verdict(report) == "inconclusive"
    assert said(report).startswith("every input is empty")
    report = check(lambda x: x[:0].sin(), values(3))
    assert verdict(report) == "inconclusive"
    assert said(report).startswith("every output is empty")


def test_one_empty_input_beside_others() -> None:
    report = check(lambda x, y: x.sum() + y.square().sum(), values(0, 3), values(3))
    assert verdict(report) == "pass"
    (judged,) = [item for item in report.targets[0].checks if item.code == "GL401"]
    assert judged.note == "x: is empty: nothing to judge"
    assert judged.resolution is not None
    assert judged.resolution < 1e-6


def test_outputs_that_do_not_depend_on_the_inputs() -> None:
    report = check(lambda x: torch.ones(3, dtype=x.dtype), values(3))
    assert verdict(report) == "inconclusive"
    assert "none depends smoothly on an input: nothing was judged" in said(report)


def test_outputs_that_change_shape_or_dtype_with_the_values() -> None:
    def shapes(x: torch.Tensor) -> torch.Tensor:
        return x[: 2 + int((x.sum() * 1e9).long() % 3)].sin()

    report = check(shapes, values(30), order=1)
    assert verdict(report) == "inconclusive"
    assert "change with the values of the inputs (output: float64[" in said(report)

    def dtypes(x: torch.Tensor) -> torch.Tensor:
        return x.sin() if int((x.sum() * 1e9).long()) % 2 else x.sin().float()

    (judged,) = [
        item
        for item in check(dtypes, values(30), order=1).targets[0].checks
        if item.code == "GL401"
    ]
    assert "forward's outputs change with the values of the inputs (output: float" in judged.note


@pytest.mark.parametrize(
    ("op", "text"),
    [
        (
            lambda x: float(x.detach().sum()),
            "no output is floating-point or complex (output: float)",
        ),
        (lambda x: None, "no output is floating-point or complex"),
        (lambda x: x.argsort(), "no output is floating-point or complex"),
    ],
)
def test_outputs_without_a_derivative(op: Any, text: str) -> None:
    report = check(op, values(3))
    assert verdict(report) == "inconclusive"
    assert said(report).startswith(text)


def test_other_outputs_beside_a_tensor_are_left_alone() -> None:
    assert verdict(check(lambda x: (x.sin(), "text", None, 3), values(3))) == "pass"


MASK = torch.tensor([True, False, False, True])


class MaskedSquare(torch.autograd.Function):
    """x² with −∞ where the mask is."""

    factor = 2.0

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x).masked_fill(MASK, -torch.inf)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return (MaskedSquare.factor * x * grad_output).masked_fill(MASK, 0.0)


def test_outputs_that_are_infinite_behind_a_mask_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    report = check(MaskedSquare, values(3, 4))
    assert verdict(report) == "pass"
    (judged,) = [item for item in report.targets[0].checks if item.code == "GL401"]
    assert judged.note == (
        "output: 6 of 12 elements are infinite whatever the inputs, and were left out"
    )
    assert verdict(check(lambda x: (x * x).masked_fill(MASK, -torch.inf), values(3, 4))) == "pass"
    monkeypatch.setattr(MaskedSquare, "factor", 3.0)
    report = check(MaskedSquare, values(3, 4))
    assert verdict(report) == "fail"
    assert [finding.code for finding in report.findings] == ["GL401"]


def test_masked_scores_are_judged() -> None:
    def op(x: torch.Tensor) -> torch.Tensor:
        return torch.log_softmax((x * x).masked_fill(MASK, -torch.inf), -1)

    assert verdict(check(op, values(3, 4))) == "pass"


def test_an_exception_in_the_middle() -> None:
    calls = [0]

    def op(x: torch.Tensor) -> torch.Tensor:
        calls[0] += 1
        if calls[0] > 12:
            raise ValueError("no more")
        return x.sin()

    report = check(op, values(3), order=1)
    assert "ValueError" in said(report)
    assert [finding.code for finding in report.findings] == ["GL606"]
    assert "ValueError: no more" in report.findings[0].message


def test_an_exception_beside_the_sample_only() -> None:
    start = values(3)

    def op(x: torch.Tensor) -> torch.Tensor:
        if not torch.equal(x, start):
            raise ValueError("only there")
        return x.sin()

    report = check(op, start, order=1)
    assert verdict(report) == "inconclusive"
    assert "forward raises near the sample (ValueError: only there)" in said(report)


def test_arguments_that_do_not_fit_are_errors_with_a_next_step() -> None:
    with pytest.raises(gradlint.GradlintError, match="no tensor among the arguments"):
        gradlint.check(Sin, ("hello",))
    with pytest.raises(gradlint.GradlintError, match="missing a required argument: 'x'"):
        gradlint.check(Sin, ())


def held_by_closure() -> Callable[[torch.Tensor], torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    return lambda x: x * torch.rand(3, generator=generator, dtype=x.dtype)


def held_by_numpy() -> Callable[[torch.Tensor], torch.Tensor]:
    numpy = pytest.importorskip("numpy")
    generator = numpy.random.default_rng(3)
    return lambda x: x * generator.random()


def held_by_python() -> Callable[[torch.Tensor], torch.Tensor]:
    generator = random.Random(3)
    return lambda x: x * generator.random()


class Noisy(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(1)
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * torch.rand(3, generator=self.generator, dtype=x.dtype)


@pytest.mark.parametrize(
    "op",
    [
        held_by_closure,
        held_by_numpy,
        held_by_python,
        Noisy,
        lambda: lambda x: x * random.random(),
        lambda: torch.nn.Dropout(0.5),
    ],
)
def test_every_call_of_a_stochastic_op_draws_the_same_numbers(op: Callable[[], Any]) -> None:
    report = check(op(), values(3))
    # Checkpointing brings back no generators but PyTorch's own.
    assert {(f.code, f.severity) for f in report.findings} <= {("GL609", "warning")}
    assert {c.verdict for c in report.targets[0].checks if c.code != "GL609"} == {"pass", "skipped"}
    assert "forward draws random numbers: every call starts from the same seed" in (
        report.targets[0].notes
    )


def test_a_generator_that_nobody_can_reach_is_told_as_that() -> None:
    def op(x: torch.Tensor) -> torch.Tensor:
        generator = torch.Generator()
        generator.seed()
        return x * torch.rand(3, generator=generator, dtype=x.dtype)

    report = check(op, values(3))
    assert said(report).startswith("forward gives another `output` when called again")
    assert {finding.code for finding in report.findings} == {"GL606"}
