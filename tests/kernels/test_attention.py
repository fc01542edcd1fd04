"""attention against PyTorch's, and the masked softmax inside it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import grad, gradcheck, gradgradcheck
from torch.nn import functional
from torch.testing import assert_close

ops = torch.ops.gradlint
scaled_dot_product_attention: Callable[..., Tensor] = functional.scaled_dot_product_attention

#: Roundings of one number of the dtype that inputs and results near 1 may lose.
TOLERANCE = {torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 2e-2}


def drawn(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape) + 1)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def triple(*leading: int, rows: int = 4, keys: int = 5, wide: int = 3) -> tuple[Tensor, ...]:
    shapes = (*leading, rows, wide), (*leading, keys, wide), (*leading, keys, 6)
    return tuple(drawn(*shape).requires_grad_() for shape in shapes)


def some(*shape: int) -> Tensor:
    """A mask; the third query may look nowhere."""
    mask = drawn(*shape) > -0.3
    mask[..., 2, :] = False
    return mask


MASKS: dict[str, Callable[[], Tensor | None]] = {
    "none": lambda: None,
    "one for all": lambda: some(4, 5),
    "one for each": lambda: some(2, 3, 4, 5),
    "one for each head": lambda: some(3, 4, 5),
    "of keys": lambda: drawn(2, 1, 1, 5) > 0,
    "of queries": lambda: drawn(4, 1) > 0,
    "transposed": lambda: some(5, 4).mT,
    "nothing": lambda: torch.zeros(4, 5, dtype=torch.bool),
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_values_and_gradients(mask: Callable[[], Tensor | None]) -> None:
    inputs = triple(2, 3)
    got, expected = (op(*inputs, mask()) for op in (ops.attention, scaled_dot_product_attention))
    assert_close(got, expected)
    weights = drawn(2, 3, 4, 6)
    assert_close(grad(got, inputs, weights), grad(expected, inputs, weights))


def test_a_query_that_may_look_nowhere_gives_zeros() -> None:
    inputs = triple(2)
    output = ops.attention(*inputs, some(4, 5))
    assert torch.equal(output[:, 2], torch.zeros(2, 6, dtype=torch.float64))
    gradients = grad(output, inputs, torch.ones_like(output))
    assert torch.equal(gradients[0][:, 2], torch.zeros(2, 3, dtype=torch.float64))
    assert all(bool(gradient.isfinite().all()) for gradient in gradients)


@pytest.mark.parametrize("masked", [False, True])
def test_first_and_second_derivatives(masked: bool) -> None:
    inputs = triple(2, rows=3, keys=2, wide=2)
    mask = torch.tensor([[True, True], [False, False], [True, False]]) if masked else None

    def op(*args: Tensor) -> Tensor:
        return ops.attention(*args, mask)  # type: ignore[no-any-return]

    assert gradcheck(op, inputs)
    assert gradgradcheck(op, inputs, gen_non_contig_grad_outputs=True)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_lower_precision(dtype: torch.dtype) -> None:
    inputs = [tensor.detach().to(dtype).requires_grad_() for tensor in triple(2, 3)]
    exact = [tensor.detach().double().requires_grad_() for tensor in inputs]
    got, expected = ops.attention(*inputs), scaled_dot_product_attention(*exact)
    tolerance = TOLERANCE[dtype]
    assert got.dtype == dtype
    assert_close(got.double(), expected, rtol=tolerance, atol=tolerance)
    gradients = [g.double() for g in grad(got.sum(), inputs)]
    assert_close(gradients, list(grad(expected.sum(), exact)), rtol=tolerance, atol=tolerance)


def test_any_strides() -> None:
    query, key, value = drawn(4, 2, 6), drawn(2, 3, 5), drawn(2, 5, 6)
    views = query.transpose(0, 1)[..., ::2], key.mT, value.flip(0)[:1].expand(2, 5, 6)
    assert_close(ops.attention(*views), scaled_dot_product_attention(*views))


@pytest.mark.parametrize("size", [(4, 5, 0, 6), (4, 0, 3, 6), (0, 5, 3, 6), (4, 5, 3, 0)])
def test_empty(size: tuple[int, int, int, int]) -> None:
    rows, keys, wide, across = size
    inputs = drawn(2, rows, wide), drawn(2, keys, wide), drawn(2, keys, across)
    assert_close(ops.attention(*inputs), scaled_dot_product_attention(*inputs))
    assert ops.attention(*(tensor[:0] for tensor in inputs)).shape == (0, rows, across)


def test_large_scores() -> None:
    query, key, value = triple(2)
    output = ops.attention(query * 1e6, key * 1e6, value)
    assert_close(output, value.gather(1, (query @ key.mT).argmax(-1)[..., None].expand(2, 4, 6)))
    assert all(bool(g.isfinite().all()) for g in grad(output.sum(), (query, key, value)))


def test_masked_softmax_of_infinite_scores() -> None:
    inf = float("inf")
    scores = torch.tensor([[[0.0, -inf], [-inf, -inf], [1e300, 1e300]]], dtype=torch.float64)
    expected = torch.tensor([[[1.0, 0.0], [0.0, 0.0], [0.5, 0.5]]], dtype=torch.float64)
    assert torch.equal(ops.masked_softmax(scores, None, 0.5), expected)


@pytest.mark.parametrize("columns", [1, 33, 70001])
def test_masked_softmax_of_long_rows(columns: int) -> None:
    scores = drawn(1, 2, columns)
    assert_close(ops.masked_softmax(scores, None, 2.0), (2 * scores).softmax(-1))
    got = ops.masked_softmax(scores.float(), None, 2.0)
    assert_close(got.double(), (2 * scores.float().double()).softmax(-1), rtol=2e-6, atol=0)


def test_opcheck() -> None:
    inputs = triple(2)
    torch.library.opcheck(ops.attention.default, inputs)
    scores = drawn(2, 3, 4).requires_grad_()
    p = scores.detach().softmax(-1).requires_grad_()
    torch.library.opcheck(ops.masked_softmax.default, (scores, some(2, 3, 4), 0.5))
    torch.library.opcheck(ops.masked_softmax_backward.default, (scores, p, 0.5))


Q, K, V = torch.ones(2, 4, 3), torch.ones(2, 5, 3), torch.ones(2, 5, 6)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((Q[0, 0], K, V), r"`query` must have the shape \(\*, L, E\), got \[3\]"),
        ((Q, K[:1], V), r"`key` must have the axes of `query` before the last two, \[2\], got"),
        ((Q, K[0], V), r"`key` must have the axes of `query` before the last two, \[2\], got \[\]"),
        ((Q, K[..., 1:], V), "`key` must be as wide as `query`, 3, got 2"),
        ((Q, K, V[:, 1:]), "`value` must have 5 rows, as many as `key`, got 4"),
        ((Q, K.double(), V), "`key` must have the dtype of `query`, Float, got Double"),
        ((Q, K, V.to("meta")), "`value` must be on the device of `query`, cpu, got meta"),
        ((Q.int(), K.int(), V.int()), "`query` must be float64, .*, got Int"),
        ((Q, K, V, torch.ones(4, 5)), "`mask` must be bool .*, got Float"),
        (
            (Q, K, V, torch.ones(5, 4, dtype=torch.bool)),
            r"`mask` must have the shape \(\*, L, S\), \[2, 4, 5\], or .*, got \[5, 4\]",
        ),
        (
            (Q, K, V, torch.ones(4, 5, dtype=torch.bool, device="meta")),
            "`mask` must be on the device of",
        ),
        ((Q, K, None), "`value` must"),
    ],
)
def test_bad_input(inputs: tuple[object, ...], message: str) -> None:
    with pytest.raises((RuntimeError, TypeError), match=message):
        ops.attention(*inputs)


def test_bad_scale() -> None:
    with pytest.raises(ValueError, match="`scale` must be positive, got -1"):
        ops.masked_softmax(torch.ones(1, 2, 3), None, -1.0)
