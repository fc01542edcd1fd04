"""GL703 and GL704: inputs in other layouts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.autograd import Function

from gradlint.checking.severity import as_loud_as_evidence
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code


def in_a_row(tensor: torch.Tensor) -> torch.Tensor:
    steps = torch.empty(tensor.shape, device="meta").stride()
    return torch.as_strided(tensor, tensor.shape, steps, tensor.storage_offset())


class Masked(Function):
    @staticmethod
    def forward(ctx, x, weight, mask):
        ctx.save_for_backward(x, weight, mask)
        return x * weight * mask

    @staticmethod
    def backward(ctx, grad_output):
        x, weight, mask = ctx.saved_tensors
        grad = grad_output * mask
        return grad * weight, grad * x, None


class MaskInARow(Masked):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight, mask = ctx.saved_tensors
        grad = grad_output * in_a_row(mask)
        return grad * weight, grad * x, None


class WeightInARow(Masked):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight, mask = ctx.saved_tensors
        grad = grad_output * mask
        return grad * in_a_row(weight), grad * x, None


class ForwardInARow(Masked):
    @staticmethod
    def forward(ctx, x, weight, mask):
        ctx.save_for_backward(x, weight, mask)
        return in_a_row(x) * weight * mask


class Refuses(Masked):
    @staticmethod
    def forward(ctx, x, weight, mask):
        assert x.is_contiguous()
        return Masked.forward(ctx, x, weight, mask)


class Breaks(Masked):
    @staticmethod
    def forward(ctx, x, weight, mask):
        if not x.is_contiguous():
            raise KeyError("plan")
        return Masked.forward(ctx, x, weight, mask)


class FromTheStart(Masked):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight, mask = ctx.saved_tensors
        grad = grad_output * mask
        return grad * torch.as_strided(weight, x.shape, weight.stride(), 0), grad * x, None


class InPlace(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(3)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 3


class Dropout(Function):
    @staticmethod
    def forward(ctx, x):
        mask = torch.empty_like(x).bernoulli_(0.5)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, grad_output):
        (mask,) = ctx.saved_tensors
        return grad_output * mask


class DropoutInARow(Dropout):
    @staticmethod
    def backward(ctx, grad_output):
        (mask,) = ctx.saved_tensors
        return grad_output * in_a_row(mask)


class Linear(torch.nn.Module):
    def __init__(self, *, in_a_row: bool) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(2)
        self.weight = torch.nn.Parameter(torch.randn(5, 4, generator=generator))
        self.in_a_row = in_a_row

    def forward(self, x):
        weight = in_a_row(self.weight) if self.in_a_row else self.weight
        return x @ weight.mT


def probe(probed: Callable[..., Outcome], code: str, op: object, *args: object) -> Outcome:
    rule = by_code(code)
    assert rule is not None
    return probed(rule, op, *args)


def arguments() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    x, weight = (torch.randn(3, 4, generator=generator) for _ in range(2))
    return x, weight, weight > 0.1


@pytest.mark.parametrize("code", ["GL703", "GL704"])
def test_layout_makes_no_difference(probed: Callable[..., Outcome], code: str) -> None:
    for op, args in (
        (Masked, arguments()),
        (InPlace, arguments()[:1]),
        (Dropout, arguments()[:1]),
        (Linear(in_a_row=False), arguments()[:1]),
    ):
        outcome = probe(probed, code, op, *args)
        assert (outcome.verdict, outcome.findings) == ("pass", []), op


def test_tensor_to_blame_is_named(probed: Callable[..., Outcome]) -> None:
    findings = probe(probed, "GL703", WeightInARow, *arguments()).findings
    assert [item.message for item in findings] == [
        "gradient for `x` is wrong where `weight` is transposed in memory"
    ]
    findings = probe(probed, "GL703", MaskInARow, *arguments()).findings
    assert [item.message for item in findings] == [
        "gradient for `x` is wrong where `mask` is transposed in memory",
        "gradient for `weight` is wrong where `mask` is transposed in memory",
    ]


def test_other_outputs_come_before_gradients(probed: Callable[..., Outcome]) -> None:
    (finding,) = probe(probed, "GL703", ForwardInARow, *arguments()).findings
    assert finding.message == (
        "forward returns a different `output` where `x` is transposed in memory"
    )
    assert finding.location is not None
    assert finding.location.line == ForwardInARow.forward.__code__.co_firstlineno + 1


def test_refusing_openly_is_noted(probed: Callable[..., Outcome]) -> None:
    outcome = as_loud_as_evidence(probe(probed, "GL703", Refuses, *arguments()))
    assert outcome.verdict == "pass"
    (finding,) = outcome.findings
    assert (finding.severity, finding.message) == (
        "info",
        "forward refuses `x` transposed in memory",
    )


def test_other_exceptions_of_forward_are_errors(probed: Callable[..., Outcome]) -> None:
    (finding,) = probe(probed, "GL703", Breaks, *arguments()).findings
    assert (finding.severity, finding.message) == (
        "error",
        "forward raises KeyError where `x` is transposed in memory",
    )


def test_storage_offset_of_inputs(probed: Callable[..., Outcome]) -> None:
    (finding,) = probe(probed, "GL704", FromTheStart, *arguments()).findings
    assert finding.message == (
        "gradient for `x` is not finite where `weight` is contiguous at storage offset 1"
    )


def test_random_numbers_are_judged_by_what_is_computed(probed: Callable[..., Outcome]) -> None:
    (finding,) = probe(probed, "GL703", DropoutInARow, *arguments()[:1]).findings
    assert finding.message == "wrong gradient for `x` where inputs are transposed in memory"


def test_parameters_of_modules(probed: Callable[..., Outcome]) -> None:
    (finding,) = probe(probed, "GL703", Linear(in_a_row=True), *arguments()[:1]).findings
    assert finding.message == (
        "forward returns a different `output` where `weight` is transposed in memory"
    )


def test_parameters_have_no_gaps_between_their_elements(probed: Callable[..., Outcome]) -> None:
    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor([0.5, -1.5, 2.5, 1.0]))

        def forward(self, x):
            return scaled(x, self.scale)

    def scaled(x, scale):
        return x * in_a_row(scale)

    x, scale = arguments()[0], Scaled().scale.detach()
    assert probe(probed, "GL703", Scaled(), x).findings == []
    (finding,) = probe(probed, "GL703", scaled, x, scale).findings
    assert finding.message.endswith("where `scale` is every second element of a buffer")


def test_vectors_can_be_strided_only(probed: Callable[..., Outcome]) -> None:
    class Vector(Dropout):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * in_a_row(x).cos()

    (finding,) = probe(probed, "GL703", Vector, torch.tensor([0.5, -1.5, 2.5])).findings
    assert finding.message.endswith("where `x` is every second element of a buffer")
    assert probe(probed, "GL703", Vector, torch.tensor(0.5)).verdict == "skipped"


class NoisyBackward(Function):
    """Backward adds noise of its own: in another layout it falls on other elements."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output * weight + 0.1 * torch.rand_like(x), grad_output * x


class NoisyAndInARow(NoisyBackward):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return in_a_row(x) * weight


class NoisyAndInfinite(NoisyBackward):
    @staticmethod
    def backward(ctx, grad_output):
        x, _ = ctx.saved_tensors
        first, second = NoisyBackward.backward(ctx, grad_output)
        return (first, second) if x.is_contiguous() else (first / 0.0, second)


def test_noise_of_backward_is_not_compared(probed: Callable[..., Outcome]) -> None:
    generator = torch.Generator().manual_seed(0)
    x, weight = (torch.randn(3, 4, generator=generator) for _ in range(2))
    rule = by_code("GL703")
    outcome = probed(rule, NoisyBackward, x, weight)
    assert (outcome.verdict, outcome.findings) == ("inconclusive", [])
    assert outcome.note.startswith("random numbers fill a tensor in the order of its memory")

    wrong = probed(rule, NoisyAndInARow, x, weight).findings
    assert {item.output for item in wrong} == {"output"}
    infinite = probed(rule, NoisyAndInfinite, x, weight).findings
    assert {item.input for item in infinite} == {"x"}
