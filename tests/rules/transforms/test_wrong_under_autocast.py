"""GL904: gradients after a forward under autocast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.amp import custom_bwd, custom_fwd
from torch.autograd import Function

from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code

GL904 = by_code("GL904")
BOTH = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])


def product() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(6, 4, generator=generator), torch.randn(4, 3, generator=generator)


class Linear(Function):
    """Not written for autocast."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        return g @ weight.mT, x.mT @ g


class HalfDecorated(Linear):
    forward = staticmethod(custom_fwd(Linear.forward, device_type="cpu"))


class Decorated(HalfDecorated):
    backward = staticmethod(custom_bwd(Linear.backward, device_type="cpu"))


class InFloat32(Linear):
    forward = staticmethod(custom_fwd(Linear.forward, device_type="cpu", cast_inputs=torch.float32))
    backward = staticmethod(custom_bwd(Linear.backward, device_type="cpu"))


class Casts(Linear):
    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        g = g.to(x.dtype)
        return g @ weight.mT, x.mT @ g


class Drops(Linear):
    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        known = (g.dtype == x.dtype) * 1.0
        g = g.to(x.dtype)
        return g @ weight.mT, x.mT @ g * known


class AsksForAutocast(Linear):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.scale = 1.0 if torch.is_autocast_enabled("cpu") else 0.0
        ctx.save_for_backward(x, weight)
        return x @ weight


@BOTH
@pytest.mark.parametrize("op", [HalfDecorated, AsksForAutocast])
def test_a_backward_that_raises(probed: Callable[..., Outcome], op: Any, dtype: Any) -> None:
    outcome = probed(GL904, op, *product(), dtype=dtype)
    (finding,) = outcome.findings
    assert (outcome.verdict, finding.severity) == ("fail", "error")
    assert "backward raises after a forward under autocast" in finding.message
    assert finding.evidence["output dtypes"] == {"output": "bfloat16"}
    assert "custom_bwd" in finding.help


def test_an_op_that_was_not_written_for_autocast_is_told(probed: Callable[..., Outcome]) -> None:
    outcome = probed(GL904, Linear, *product())
    (finding,) = outcome.findings
    assert (outcome.verdict, finding.severity) == ("pass", "info")


@BOTH
def test_wrong_values(probed: Callable[..., Outcome], dtype: Any) -> None:
    outcome = probed(GL904, Drops, *product(), dtype=dtype)
    (finding,) = outcome.findings
    assert (outcome.verdict, finding.severity, finding.input) == ("fail", "error", "weight")
    assert finding.evidence["relative_error"] == pytest.approx(1.0)
    assert finding.evidence["allowed"] < 0.5


@BOTH
@pytest.mark.parametrize("op", [Decorated, InFloat32, Casts, torch.matmul])
def test_right_ops_are_silent(probed: Callable[..., Outcome], op: Any, dtype: Any) -> None:
    outcome = probed(GL904, op, *product(), dtype=dtype)
    assert (outcome.verdict, outcome.findings) == ("pass", [])
    assert outcome.note == ("autocast changes no output" if op is InFloat32 else "")


@pytest.mark.parametrize(
    "op",
    [
        lambda x: (x @ x.mT).relu() @ x,
        lambda x: (x @ x.mT).softmax(-1) @ x,
        lambda x: torch.cdist(x, x),
        lambda x: torch.nn.functional.layer_norm(x @ x.mT, (6,)),
        lambda x: (x @ x.mT).amax(-1),
        torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)),
    ],
)
def test_kinks_and_conditions_are_allowed_for(probed: Callable[..., Outcome], op: Any) -> None:
    assert probed(GL904, op, product()[0]).findings == []


def test_a_gradient_that_is_zero_but_for_rounding_may_be_rounding(
    probed: Callable[..., Outcome],
) -> None:
    for seed in range(5):
        torch.manual_seed(seed)
        op = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8))
        assert probed(GL904, op, product()[0]).findings == []


def test_a_forward_that_refuses_is_information(probed: Callable[..., Outcome]) -> None:
    def op(x: Tensor) -> Tensor:
        if torch.is_autocast_enabled("cpu"):
            raise RuntimeError("not under autocast")
        return x.sin()

    outcome = probed(GL904, op, product()[0])
    assert (outcome.verdict, outcome.findings[0].severity) == ("pass", "info")


@pytest.mark.parametrize(
    ("dtype", "reason"),
    [(torch.bfloat16, "inputs are not in float32"), (torch.float64, "in float32 forward raises")],
)
def test_what_can_not_be_compared_is_skipped(
    probed: Callable[..., Outcome], dtype: torch.dtype, reason: str
) -> None:
    def op(x: Tensor) -> Tensor:
        if x.dtype == torch.float32:
            raise TypeError("no float32")
        return x.sin()

    outcome = probed(GL904, op, product()[0], dtype=dtype)
    assert outcome.verdict == "skipped"
    assert reason in outcome.note


def test_rounding_is_measured_only_where_autocast_changes_a_gradient(
    subject: Callable[..., Subject],
) -> None:
    def calls(function: Any, *args: Tensor) -> int:
        bound = subject(function, *args)
        before = bound.run, bound.problem.forward_calls + bound.problem.backward_calls
        assert GL904.probe(bound).verdict == "pass"
        return bound.problem.forward_calls + bound.problem.backward_calls - before[1]

    assert calls(torch.matmul, *product()) == calls(torch.mul, *(product()[0],) * 2) + 2


def test_complex_cotangents_stay_complex(probed: Callable[..., Outcome]) -> None:
    seen = []

    class Spectrum(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return torch.fft.fft(x)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            seen.append((g.dtype, float(g.imag.abs().sum())))
            return torch.fft.ifft(g, norm="forward").real

    assert probed(GL904, Spectrum, product()[0].double()).findings == []
    assert torch.complex64 in {dtype for dtype, _ in seen}
    assert all(imaginary > 0 for _, imaginary in seen)


class HalfComplex(Function):
    """Complex numbers of 16 bits, which PyTorch does not compare."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.chalf()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g.to(torch.complex64).real.double()


def test_outputs_that_cannot_be_compared(probed: Callable[..., Outcome]) -> None:
    x = torch.linspace(-1.0, 2.0, 6, dtype=torch.float64)
    assert probed(GL904, HalfComplex, x).verdict in ("pass", "skipped")
