"""GL401: backward is linear in grad_output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
import torch

from gradlint.checking.severity import decided
from gradlint.experiments.value.linearity import IN_FLOAT64_NOTE
from gradlint.model.rule import Outcome
from gradlint.rules.value.wrong_gradient import RULE

X = torch.tensor([0.7, -1.3, 2.1, 0.2])


def sine(then: Callable[[torch.Tensor], torch.Tensor]) -> type:
    """sin x whose gradient is passed through ``then``."""

    class Op(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return then(g * x.cos())

    return Op


BENT: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], str]] = {
    "clipped by value": (lambda g: g.clamp(-1e3, 1e3), "clipped"),
    "clipped by norm": (lambda g: g * (50.0 / g.norm()).clamp(max=1.0), "clipped"),
    "threshold": (lambda g: torch.where(g.abs() < 1e-4, 0 * g, g), "set to zero"),
    "rounded": (lambda g: (g * 1e7).round() / 1e7, "not scaled by the same factor"),
    "constant": (lambda g: g + 1e-8, "constant of about 1e-08"),
    "epsilon": (lambda g: g * g.norm() / (g.norm() + 1e-8), "not scaled by the same factor"),
}


@pytest.mark.parametrize("name", BENT)
def test_what_bends_far_from_ordinary_gradients_is_found(
    name: str, probed: Callable[..., Outcome]
) -> None:
    then, text = BENT[name]
    outcome = probed(RULE, sine(then), X)
    assert outcome.verdict == "fail"
    (finding,) = outcome.findings
    assert finding.cause == ("additive-constant" if name == "constant" else "not-linear")
    assert text in finding.cause_text
    assert finding.location is not None


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_clipping_beyond_most_of_grad_output_is_found(
    dtype: torch.dtype, probed: Callable[..., Outcome]
) -> None:
    outcome = probed(RULE, sine(lambda g: g.clamp(-2, 2)), X, dtype=dtype)
    assert {finding.cause for finding in outcome.findings} == {"not-linear"}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_deviations_that_sum_to_nothing_pass(
    dtype: torch.dtype, probed: Callable[..., Outcome]
) -> None:
    def op(x: torch.Tensor) -> torch.Tensor:
        return (x - x.mean(-1, keepdim=True)).sum(-1)

    assert probed(RULE, op, X.reshape(2, 2), dtype=dtype).findings == []


STRAIGHT: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "plain": lambda g: g,
    "nan_to_num": torch.nan_to_num,
    "clamped beyond reach": lambda g: g.clamp(-1e30, 1e30),
    "through float32": lambda g: g.float().to(g.dtype),
    "random but seeded": lambda g: g * (1 + 1e-9 * torch.rand_like(g)),
}


@pytest.mark.parametrize("name", STRAIGHT)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_linear_ones_pass(name: str, dtype: torch.dtype, subject: Callable[..., Any]) -> None:
    assert RULE.probe is not None
    outcome = RULE.probe(subject(sine(STRAIGHT[name]), X, dtype=dtype))
    assert [item for item in outcome.findings if item.severity != "info"] == []


def test_half_precision_inside_overflows_and_is_noted(subject: Callable[..., Any]) -> None:
    op = sine(lambda g: g if g.dtype == torch.float64 else (8 * g).half().to(g.dtype) / 8)
    assert RULE.probe is not None
    outcome = RULE.probe(subject(op, X, dtype=torch.float32))
    assert outcome.verdict == "pass"
    assert "gradients overflow at 65536 times grad_output" in outcome.note


def test_a_clipped_gradient_that_is_wrong_already_is_told_once(
    probed: Callable[..., Outcome],
) -> None:
    outcome = probed(RULE, sine(lambda g: g.clamp(-0.1, 0.1)), X)
    assert [finding.message for finding in outcome.findings] == ["wrong gradient for `x`"]


@pytest.mark.parametrize("op", [torch.linalg.inv, torch.logsumexp, torch.cumsum])
def test_ill_conditioned_and_long_sums_pass(op: Any, probed: Callable[..., Outcome]) -> None:
    generator = torch.Generator().manual_seed(0)
    if op is torch.linalg.inv:
        q, _ = torch.linalg.qr(torch.randn(6, 6, generator=generator).double())
        values = (q * torch.logspace(0, -7, 6, dtype=torch.float64)) @ q.mT
        outcome = probed(RULE, lambda a: torch.linalg.inv(a), values)
    else:
        outcome = probed(RULE, lambda a: op(a, 0), 30 * torch.randn(500, generator=generator))
    assert [item for item in outcome.findings if item.cause == "not-linear"] == []


class BlockExponential(torch.autograd.Function):
    """exp(A); backward takes the derivative from exp of a block with grad_output beside A, whose
    rounding grows with grad_output."""

    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return torch.matrix_exp(a)

    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        n = a.shape[-1]
        block = torch.cat((torch.cat((a.mT, g), -1), torch.cat((torch.zeros_like(a), a.mT), -1)))
        return torch.matrix_exp(block)[:n, n:]


class ClippedBlockExponential(BlockExponential):
    @staticmethod
    def backward(ctx, g):
        return BlockExponential.backward(ctx, g).clamp(-1e3, 1e3)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_rounding_that_grows_with_grad_output_passes(
    dtype: torch.dtype, probed: Callable[..., Outcome]
) -> None:
    a = torch.tensor([[0.4, -1.1, 0.6], [0.9, 0.2, -0.7], [-0.3, 1.2, 0.5]])
    outcome = probed(RULE, BlockExponential, a, dtype=dtype)
    assert [item for item in outcome.findings if item.severity != "info"] == []
    assert (IN_FLOAT64_NOTE in outcome.note) == (dtype == torch.float32)
    clipped = probed(RULE, ClippedBlockExponential, a, dtype=dtype)
    assert [finding.cause for finding in clipped.findings] == ["not-linear"]


class DeclaredClip(torch.autograd.Function):
    surrogate: ClassVar[dict[str, str]] = {"x": "grad_output.clamp(-10, 10)"}

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g.clamp(-10, 10)


def test_what_is_declared_need_not_be_linear(probed: Callable[..., Outcome]) -> None:
    outcome = probed(RULE, DeclaredClip, X)
    assert (outcome.verdict, outcome.findings) == ("pass", [])


def summed_gaps(then: Callable[[torch.Tensor], torch.Tensor]) -> type:
    """Running sums of a series with gaps (NaN)."""

    class SummedGaps(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.nan_to_num(0.0).cumsum(0)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return then(torch.where(x.isnan(), 0.0, g.flip(0).cumsum(0).flip(0)))

    return SummedGaps


@pytest.mark.parametrize(
    ("then", "verdict"), [(torch.clone, "pass"), (lambda g: g.clamp(-1e3, 1e3), "fail")]
)
def test_inputs_that_are_not_finite_leave_rounding_its_room(
    then: Callable[[torch.Tensor], torch.Tensor], verdict: str, probed: Callable[..., Outcome]
) -> None:
    series = torch.tensor([0.7, float("nan"), 2.1, 0.2, float("nan"), -1.7, 0.4, 0.9])
    assert probed(RULE, summed_gaps(then), series.double()).verdict == verdict


def test_an_output_that_cancels_to_zero_is_not_weighed_up(probed: Callable[..., Outcome]) -> None:
    """The second output is zero but for rounding; its gradient holds no digit."""

    class Op(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin(), (x.sin() ** 2 + x.cos() ** 2) - 1

        @staticmethod
        def backward(ctx, g, h):
            (x,) = ctx.saved_tensors
            s, c = (0.7 * x).sin(), (0.7 * x).cos()
            whole = s * (0.3 * x).cos() + c * (0.3 * x).sin()
            return g * x.cos() + (2 * h * x.sin() * x.cos() - 2 * h * x.cos() * whole)

    assert probed(RULE, Op, X).findings == []


def of_a_solver(then: Callable[[torch.Tensor], torch.Tensor]) -> type:
    """x = 0.5 A x + b, which backward solves by as many steps as an absolute tolerance asks for."""

    class Solved(torch.autograd.Function):
        A = torch.tensor([[0.3, 0.9], [-0.8, 0.4]], dtype=torch.float64)

        @staticmethod
        def forward(ctx, b):
            return torch.linalg.solve(torch.eye(2, dtype=b.dtype) - 0.5 * Solved.A, b)

        @staticmethod
        def backward(ctx, g):
            u = g
            for _ in range(200):
                new = g + 0.5 * Solved.A.mT @ u
                ended = (new - u).abs().max() < 1e-7
                u = new
                if ended:
                    break
            return then(u)

    return Solved


def test_a_tolerance_of_backward_is_no_fault(probed: Callable[..., Outcome]) -> None:
    b = torch.tensor([0.7, -1.3], dtype=torch.float64)
    outcome = probed(RULE, of_a_solver(torch.clone), b)
    (told,) = outcome.findings
    assert told.grounds.explained == "solver"
    assert "relative to the size of grad_output" in told.help
    assert decided("error", told.grounds)[0] == "info"
    clipped = probed(RULE, of_a_solver(lambda u: u.clamp(-1e3, 1e3)), b)
    assert [item.grounds.explained for item in clipped.findings] == [None]
