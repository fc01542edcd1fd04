"""Axes whose sizes follow from others, bounds of segments, axes that an argument selects."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import Function

import gradlint
from gradlint.inputs._attempt import Failure, Frame
from gradlint.inputs._domain_repairs import from_domains
from gradlint.inputs._frames import FailedAttempt
from gradlint.inputs._infer import infer
from gradlint.inputs._plan import OTHER_SIZES, SEARCH_SIZES, Plan, TensorGuess, ValueGuess
from gradlint.inputs.described import arguments_in
from gradlint.model.sample import Sample
from gradlint.targets.build import from_object


def inferred(thing: object) -> list[Sample]:
    return infer(from_object(thing), 0)


def shapes(sample: Sample) -> list[tuple[int, ...]]:
    return [tuple(t.shape) for _, t in sample.named_tensors(None)]


def codes(thing: object) -> set[str]:
    """Codes of the findings that fail, at first order. What compiles and transforms the operator
    takes most of the time, and sees the same inputs."""
    found = gradlint.check(thing, seed=0, order=1, ignore=["GL9"]).findings
    return {finding.code for finding in found if finding.severity != "info"}


# Sizes of a plan.


def plan(*shapes: str, **values: int) -> Plan:
    """Tensors with the axes in words, then integer arguments."""
    tensors = [TensorGuess(tuple(words.split())) for words in shapes]
    names = (*(f"t{k}" for k in range(len(shapes))), *values)
    return Plan(names, (*tensors, *(ValueGuess(value) for value in values.values())))


def test_a_product_has_the_size_of_its_factors() -> None:
    sizes = plan("M T*k D", "M T k").sizes()

    assert sizes["T*k"] == sizes["T"] * sizes["k"]
    assert len(set(sizes.values())) == len(sizes)


@pytest.mark.parametrize("pool", [(), *OTHER_SIZES])
def test_what_is_divided_is_a_multiple(pool: tuple[int, ...]) -> None:
    made = plan("O I", "O I/group", group=32)
    sizes = Plan(made.names, made.guesses, pool=pool).sizes()

    assert sizes["I"] == 32 * sizes["I/group"]


@pytest.mark.parametrize("pool", [(), SEARCH_SIZES, *OTHER_SIZES])
@pytest.mark.parametrize(
    ("axes", "divisor"),
    [(("D/2",), 2), (("D//2",), 2), (("D/2", "D/3"), 6), (("D//4", "D/2"), 4)],
)
def test_of_what_has_a_part_by_a_number_there_is_no_rest(
    pool: tuple[int, ...], axes: tuple[str, ...], divisor: int
) -> None:
    made = plan("B T D", *(f"T {axis}" for axis in axes))
    sizes = Plan(made.names, made.guesses, pool=pool).sizes()

    assert sizes["D"] % divisor == 0
    assert all(sizes[axis] == sizes["D"] // int(axis.strip("D/")) for axis in axes)


@pytest.mark.parametrize("pool", [(), SEARCH_SIZES, *OTHER_SIZES])
def test_a_power_follows_from_its_exponent(pool: tuple[int, ...]) -> None:
    made = plan("2**k", "2**k k", "B 2**n", n=4)
    sizes = Plan(made.names, made.guesses, pool=pool).sizes()

    assert sizes["2**k"] == 2 ** sizes["k"]
    assert sizes["2**n"] == 16
    assert plan("2**n", n=40).sizes()["2**n"] < 99  # no size of a sample


def test_half_and_one_more_is_of_any_size() -> None:
    assert plan("N n", "n//2+1").sized("N", 4).sizes()["n"] % 2 == 1


@pytest.mark.parametrize(("axis", "n", "size"), [("n//2+1", 7, 4), ("2*n", 7, 14), ("2n", 7, 14)])
def test_sums_and_quotients(axis: str, n: int, size: int) -> None:
    assert plan("n", axis).sized("n", n).sizes()[axis] == size


def test_a_term_that_is_tied_to_another_axis_is_followed() -> None:
    tied = plan("a", "n", "n-1").tied("a", "n")

    assert tied.sizes()["a-1"] == tied.sizes()["a"] - 1


def test_a_word_with_a_hyphen_is_an_axis_of_its_own() -> None:
    made = plan("C-in", "K")

    assert len(set(made.sizes().values())) == 2
    assert made.composed() == {"C-in": frozenset()}


def test_a_composed_size_is_no_other_one_by_chance() -> None:
    made = plan("B n", "n//2+1")
    sizes = Plan(made.names, made.guesses, pool=(3, 4, 5)).sizes()

    assert sizes == {"B": 5, "n": 4, "n//2+1": 3}


# Words.


def test_types_in_brackets_between_names_and_their_shape() -> None:
    text = "scales (float) and zeros (int8): (O, I / group_size)."
    found = arguments_in(text, ["x", "scales", "zeros"])

    assert found["scales"].axes == found["zeros"].axes == ("O", "I/group_size")


# Operators.


class BlockScale(Function):
    """x: (N, B * w) and scale: (N, B); w columns make a block."""

    @staticmethod
    def forward(ctx, x: Tensor, scale: Tensor, w=4):
        ctx.w = w
        ctx.save_for_backward(x, scale)
        return x * scale.repeat_interleave(w, 1)

    @staticmethod
    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        blocks = (g * x).view(*scale.shape, ctx.w)
        return g * scale.repeat_interleave(ctx.w, 1), BlockScale.reduced(blocks), None

    @staticmethod
    def reduced(blocks):
        return blocks.sum(-1)


class BlockScaleMean(BlockScale):
    @staticmethod
    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        blocks = (g * x).view(*scale.shape, ctx.w)
        return g * scale.repeat_interleave(ctx.w, 1), blocks.mean(-1), None


def test_an_axis_that_is_a_multiple_by_an_argument() -> None:
    (n, wide), (_, blocks) = shapes(inferred(BlockScale)[0])

    assert wide == 4 * blocks
    assert n != blocks
    assert codes(BlockScale) == set()
    assert codes(BlockScaleMean) == {"GL401"}


class HalfSpectrum(Function):
    """Filter x (N, n) by a complex gain (n // 2 + 1,) per frequency."""

    @staticmethod
    def forward(ctx, x, gain):
        n = x.shape[-1]
        ctx.save_for_backward(x, gain)
        return torch.fft.irfft(torch.fft.rfft(x) * gain, n=n)

    @staticmethod
    def backward(ctx, g):
        return HalfSpectrum.gradients(ctx, g, last_alone=g.shape[-1] % 2 == 0)

    @staticmethod
    def gradients(ctx, g, last_alone):
        x, gain = ctx.saved_tensors
        n = x.shape[-1]
        spectrum = torch.fft.rfft(g)
        weight = torch.full(gain.shape, 2.0 / n, dtype=x.dtype)
        weight[0] = 1.0 / n
        if last_alone:
            weight[-1] = 1.0 / n
        gains = weight * (spectrum * torch.fft.rfft(x).conj()).sum(0)
        return torch.fft.irfft(spectrum * gain.conj(), n=n), gains


class HalfSpectrumEven(HalfSpectrum):
    """Filter x (N, n) by a complex gain (n // 2 + 1,) per frequency."""

    @staticmethod
    def backward(ctx, g):
        return HalfSpectrum.gradients(ctx, g, last_alone=True)


def test_even_and_odd_sizes_of_a_half() -> None:
    found = inferred(HalfSpectrum)

    assert {sample.args[0].shape[-1] % 2 for sample in found} == {0, 1}
    assert all(sample.args[1].dtype == torch.complex128 for sample in found)
    assert all(sample.args[1].shape[0] == sample.args[0].shape[-1] // 2 + 1 for sample in found)
    assert codes(HalfSpectrum) == set()
    assert codes(HalfSpectrumEven) == {"GL401"}


class Rotary(Function):
    @staticmethod
    def forward(ctx, q, cos, sin):
        # q: [batch, seq, heads, dim], cos/sin: [seq, dim // 2]
        first, second = q.chunk(2, -1)
        c, s = cos[None, :, None], sin[None, :, None]
        ctx.save_for_backward(cos, sin)
        return torch.cat([first * c - second * s, first * s + second * c], -1)

    @staticmethod
    def backward(ctx, g):
        cos, sin = ctx.saved_tensors
        return Rotary.rotated(g, cos[None, :, None], sin[None, :, None]), None, None

    @staticmethod
    def rotated(g, c, s):
        first, second = g.chunk(2, -1)
        return torch.cat([first * c + second * s, second * c - first * s], -1)


class RotaryWithoutPositions(Rotary):
    """As if all positions turned by the same angle."""

    @staticmethod
    def backward(ctx, g):
        cos, sin = ctx.saved_tensors
        return Rotary.rotated(g, cos[:1, None], sin[:1, None]), None, None


def test_halves_of_an_axis_are_given_as_its_description_says() -> None:
    (sample,) = inferred(Rotary)
    (_, seq, _, dim), half = (tuple(t.shape) for t in sample.args[:2])

    assert half == (seq, dim // 2)
    assert dim % 2 == 0
    assert codes(Rotary) == set()
    assert codes(RotaryWithoutPositions) == {"GL401"}


class PackedMean(Function):
    @staticmethod
    def forward(ctx, rows, weight, cu_lens):
        assert 0 == cu_lens[0] < cu_lens[-1] == rows.shape[0] == weight.shape[0]
        ctx.save_for_backward(rows, weight)
        ctx.bounds = cu_lens.tolist()
        pairs = zip(ctx.bounds[:-1], ctx.bounds[1:], strict=True)
        return torch.stack([(rows[a:b] * weight[a:b, None]).sum(0) for a, b in pairs])

    @staticmethod
    def backward(ctx, g):
        rows, weight = ctx.saved_tensors
        d_rows, d_weight = torch.empty_like(rows), torch.empty_like(weight)
        for k, (a, b) in enumerate(zip(ctx.bounds[:-1], ctx.bounds[1:], strict=True)):
            d_rows[a:b] = g[k] * weight[a:b, None]
            d_weight[a:b] = (rows[a:b] * g[k]).sum(1)
        return d_rows, d_weight, None


def test_bounds_that_end_where_a_chain_of_comparisons_says() -> None:
    rows, weight, bounds = inferred(PackedMean)[0].args

    assert rows.shape[0] == weight.shape[0] == bounds[-1]
    assert bounds[0] == 0
    assert bounds.numel() > 2
    assert bool((bounds.diff() > 0).all())


def test_segment_bounds_without_an_axis_raise_nothing(tmp_path: Path) -> None:
    guess = TensorGuess((), dtype="int", domain="pointers", grad=False)
    made = Plan(("x", "offsets"), (TensorGuess(("x.0",)), guess))
    source = tmp_path / "op.py"
    source.write_text("assert offsets == 1\n")
    frame = Frame(str(source), 1, 0, {"offsets": torch.tensor(0)}, {})
    failed = FailedAttempt(made, Failure("forward", "AssertionError", "", [frame]))

    assert [ast.unparse(test) for test, _, _ in failed.conditions()] == ["offsets == 1"]
    domains = [found.guess("offsets").domain for found in from_domains(failed)]
    assert "increasing" in domains


class LogNorm(Function):
    @staticmethod
    def forward(ctx, alpha, dim=-1):
        ctx.dim = dim
        ctx.save_for_backward(alpha)
        return alpha.logsumexp(dim)

    @staticmethod
    def backward(ctx, g):
        (alpha,) = ctx.saved_tensors
        return g.unsqueeze(ctx.dim) * alpha.softmax(ctx.dim), None


class LogNormLast(LogNorm):
    @staticmethod
    def backward(ctx, g):
        (alpha,) = ctx.saved_tensors
        return g.unsqueeze(ctx.dim) * alpha.softmax(-1), None


def test_an_argument_that_selects_an_axis_has_two_to_choose_from() -> None:
    (rows, columns), *_ = shapes(inferred(LogNorm)[0])

    assert rows != columns
    assert codes(LogNorm) == set()
    assert codes(LogNormLast) == {"GL401"}


# Values that reach a limit.


class _Soft(Function):
    @staticmethod
    def forward(ctx, x, limit):
        ctx.save_for_backward(x)
        ctx.limit = limit
        return limit * torch.atan(x / limit)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g / (1 + (x / ctx.limit) ** 2), None


class _SoftWrong(_Soft):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g / (1 + torch.atan(x / ctx.limit) ** 2), None


class SoftLimit(nn.Module):
    function = _Soft

    def __init__(self, limit: float = 60.0) -> None:
        super().__init__()
        self.limit = limit

    def forward(self, x):
        return self.function.apply(x, self.limit)


class SoftLimitWrong(SoftLimit):
    function = _SoftWrong


def test_values_reach_a_limit_that_a_module_holds() -> None:
    report = gradlint.check(SoftLimitWrong(), seed=0, order=1)

    errors = [finding for finding in report.findings if finding.severity == "error"]
    assert [finding.code for finding in errors] == ["GL401"]
    assert errors[0].sample == "where values reach limit=60"
    assert codes(SoftLimit()) == set()


class Drift(Function):
    @staticmethod
    def forward(ctx, t, a, w, t0=2.4e6):
        ctx.save_for_backward(t, a, w)
        ctx.t0 = t0
        return a[:, None] * torch.cos(w[:, None] * (t - t0))

    @staticmethod
    def backward(ctx, g):
        t, a, w = ctx.saved_tensors
        angle = w[:, None] * (t - ctx.t0)
        c = -g * a[:, None] * torch.sin(angle)
        return (
            (c * w[:, None]).sum(0),
            (g * torch.cos(angle)).sum(1),
            (c * (t - ctx.t0)).sum(1),
            None,
        )


def test_digits_that_cancel_in_forward_are_no_fault_at_ties() -> None:
    generator = torch.Generator().manual_seed(0)
    t, a, w = (torch.randn(size, generator=generator, dtype=torch.float64) for size in (3, 4, 4))
    args = [value.requires_grad_() for value in (t, a, w)]
    report = gradlint.check(Drift, [tuple(args)], seed=0, order=1, select=["GL4"])

    assert [finding.code for finding in report.findings if finding.severity != "info"] == []
