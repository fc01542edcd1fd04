"""linear, and the products and sums that its derivatives are made of."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.nn import functional
from torch.testing import assert_close

ops = torch.ops.gradlint

#: Half a unit in the last place, and a little for the sum in float32.
ROUNDING = {torch.float32: 1e-6, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}

#: Rows, inner size, columns: one tile, exact tiles, beyond them, one long sum in parts, empty.
SIZES = [
    (4, 8, 5),
    (1, 1, 1),
    (64, 32, 64),
    (65, 130, 67),
    (3, 20011, 2),
    (0, 3, 4),
    (3, 0, 4),
    (3, 4, 0),
]


def drawn(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape) + 1)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def leaves(*tensors: Tensor) -> list[Tensor]:
    return [tensor.clone().requires_grad_() for tensor in tensors]


@pytest.mark.parametrize("size", SIZES)
def test_values(size: tuple[int, int, int]) -> None:
    rows, inner, columns = size
    x, w, b = drawn(rows, inner), drawn(columns, inner), drawn(columns)
    assert_close(ops.linear(x, w), functional.linear(x, w), rtol=1e-12, atol=1e-11)
    assert_close(ops.linear(x, w, b), functional.linear(x, w, b), rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("size", SIZES[:5])
def test_lower_precision_is_summed_in_float32(
    size: tuple[int, int, int], dtype: torch.dtype
) -> None:
    rows, inner, columns = size
    x, w, b = drawn(rows, inner, dtype=dtype), drawn(columns, inner, dtype=dtype), drawn(columns)
    b = b.to(dtype)
    got = ops.linear(x, w, b)
    exact = functional.linear(x.double(), w.double(), b.double())
    magnitude = functional.linear(x.double().abs(), w.double().abs(), b.double().abs())
    assert got.dtype == dtype
    assert bool(
        ((got.double() - exact).abs() <= ROUNDING[dtype] * exact.abs() + 1e-6 * magnitude).all()
    )


def test_any_axes_before_the_last() -> None:
    w, b = drawn(5, 8), drawn(5)
    for shape in [(8,), (2, 3, 8), (2, 1, 3, 8), (0, 3, 8), (2, 0, 8)]:
        x = drawn(*shape)
        assert_close(ops.linear(x, w, b), functional.linear(x, w, b))


def test_any_strides() -> None:
    x, w, b = drawn(6, 4, 16), drawn(5, 16), drawn(10)
    for x_view, w_view, b_view in [
        (x.transpose(0, 1)[1:, :, ::2], w[:, ::2], b[::2]),
        (x[..., :1].expand(6, 4, 8), drawn(8, 5).mT, b[5:]),
        (drawn(8, 6).mT, w[:1, 3:11].expand(5, 8), drawn(1).expand(5)),
    ]:
        expected = functional.linear(x_view, w_view, b_view)
        assert_close(ops.linear(x_view, w_view, b_view), expected)


@pytest.mark.parametrize("with_bias", [True, False])
def test_first_and_second_derivatives(with_bias: bool) -> None:
    inputs = leaves(drawn(2, 3, 4), drawn(5, 4), *([drawn(5)] if with_bias else []))
    assert gradcheck(ops.linear, inputs)
    assert gradgradcheck(ops.linear, inputs, gen_non_contig_grad_outputs=True)


def test_third_derivative() -> None:
    x, w = leaves(drawn(2, 3), drawn(4, 3))

    def third(op: object) -> list[Tensor]:
        value = op(x, w).pow(3).sum()  # type: ignore[operator]
        for _ in range(2):
            value = sum(
                g.pow(2).sum() for g in torch.autograd.grad(value, (x, w), create_graph=True)
            )
        return list(torch.autograd.grad(value, (x, w)))

    assert_close(third(ops.linear), third(functional.linear))


@pytest.mark.parametrize("wanted", range(1, 8))
def test_only_wanted_gradients(wanted: int) -> None:
    inputs = [drawn(3, 4), drawn(5, 4), drawn(5)]
    chosen = [tensor for bit, tensor in enumerate(inputs) if wanted >> bit & 1]
    for tensor in chosen:
        tensor.requires_grad_()
    got = torch.autograd.grad(ops.linear(*inputs).pow(2).sum(), chosen)
    assert_close(got, torch.autograd.grad(functional.linear(*inputs).pow(2).sum(), chosen))


def test_grad_output_of_any_strides() -> None:
    x, w, b = leaves(drawn(6, 4), drawn(5, 4), drawn(5))
    output, expected = ops.linear(x, w, b), functional.linear(x, w, b)
    for grad in [
        drawn(1).expand(6, 5),
        drawn(5, 6).mT,
        drawn(6, 10)[:, ::2],
        drawn(31)[1:].view(6, 5),
    ]:
        got = torch.autograd.grad(output, (x, w, b), grad, retain_graph=True)
        assert_close(got, torch.autograd.grad(expected, (x, w, b), grad, retain_graph=True))


def test_batches_of_products() -> None:
    a, b = leaves(drawn(2, 3, 4), drawn(2, 4, 5))
    assert_close(ops.matmul(a, b), a @ b)
    assert_close(ops.matmul(a.detach().mT, drawn(1, 3, 5).expand(2, 3, 5)), a.mT @ drawn(1, 3, 5))
    assert gradcheck(ops.matmul, (a, b))
    assert gradgradcheck(ops.matmul, (a, b))


@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (513, 33), (20000, 2), (0, 3), (3, 0)])
def test_column_sum(shape: tuple[int, int]) -> None:
    x = drawn(*shape)
    assert_close(ops.column_sum(x), x.sum(0))
    assert_close(ops.column_sum(x.mT), x.sum(1))
    exact = x.float().double().sum(0)
    assert_close(
        ops.column_sum(x.float()).double(), exact, rtol=0, atol=1e-6 * shape[0] ** 0.5 + 1e-6
    )


def test_long_sums_keep_their_digits() -> None:
    x = torch.full((1, 1 << 20), 0.1, dtype=torch.float32)
    exact = float(x[0, 0].double() * x.numel())
    assert float(ops.linear(x, torch.ones_like(x))) == pytest.approx(exact, rel=5e-6)
    assert float(ops.column_sum(x.mT)) == pytest.approx(exact, rel=5e-6)


def test_runs_alike() -> None:
    x, w = drawn(65, 5003, dtype=torch.float32), drawn(7, 5003, dtype=torch.float32)
    assert torch.equal(ops.linear(x, w), ops.linear(x, w))


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        ("linear", [(3, 4), (5, 4), (5,)]),
        ("linear", [(2, 3, 4), (5, 4)]),
        ("matmul", [(2, 3, 4), (2, 4, 5)]),
        ("column_sum", [(3, 4)]),
    ],
)
def test_opcheck(op: str, inputs: list[tuple[int, ...]]) -> None:
    tensors = leaves(*(drawn(*shape) for shape in inputs))
    torch.library.opcheck(getattr(ops, op).default, tuple(tensors))


X, W, B = torch.ones(3, 4), torch.ones(5, 4), torch.ones(5)


@pytest.mark.parametrize(
    ("op", "inputs", "message"),
    [
        ("linear", (torch.ones(()), W), r"`input` must have the shape \(\*, C\), got a tensor"),
        ("linear", (X, W[0]), r"`weight` must have the shape \(K, C\), got \[4\]"),
        ("linear", (X, W.mT), r"`weight` must have 4 columns, .* `input`, got \[4, 5\]"),
        ("linear", (X, W, B[:4]), r"`bias` must have the shape \[5\], .*, got \[4\]"),
        ("linear", (X, W.double()), "`weight` must have the dtype of `input`, Float, got Double"),
        ("linear", (X, W, B.half()), "`bias` must have the dtype of `input`, Float, got Half"),
        ("linear", (X.long(), W.long()), "`input` must be float64, .*, got Long"),
        ("linear", (X, W.to("meta")), "`weight` must be on the device of `input`, cpu, got meta"),
        ("linear", (X, "weight"), "Expected a value of type 'Tensor' for argument 'weight'"),
        ("matmul", (X, W), r"`b` must have 4 rows, as many as `a` has columns, got 5"),
        ("matmul", (X, W[None]), r"`b` must have the shape \(K, N\), got \[1, 5, 4\]"),
        ("matmul", (X[None].expand(2, 3, 4), W.mT[None]), "as many matrices as `a`, 2, got 1"),
        ("column_sum", (B,), r"`x` must have the shape \(N, K\), got \[5\]"),
    ],
)
def test_bad_input(op: str, inputs: tuple[object, ...], message: str) -> None:
    with pytest.raises((RuntimeError, TypeError), match=message):
        getattr(ops, op)(*inputs)
