"""weighted_sum: one number of all elements, exactly enough and always the same."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.autograd import grad, gradcheck, gradgradcheck
from torch.testing import assert_close

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


def weighted_sum(x: Tensor, weight: Tensor) -> Tensor:
    result: Tensor = torch.ops.gradlint.weighted_sum(x, weight)
    return result


def drawn(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (7,), (5, 3, 2), (4099,), (3, 40000)])
def test_value_is_the_exact_sum_rounded_once(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x, weight = drawn(*shape).to(dtype), drawn(*shape).cos().to(dtype)
    got = weighted_sum(x, weight)
    assert got.shape == ()
    # Products of two float32 are exact in float64; sums differ by float64's roundings.
    exact = (x.double() * weight.double()).sum()
    spread = 1e-13 * float((x.double() * weight.double()).abs().sum())
    assert_close(got, exact.to(dtype), rtol=torch.finfo(dtype).eps, atol=spread)


def test_a_long_sum_loses_nothing() -> None:
    """A running sum in float32 would stop growing at 2²⁴."""
    x = torch.ones(2**25 + 3)
    assert weighted_sum(x, torch.ones(1).expand_as(x)).item() == 2**25 + 4  # nearest float32


def test_layouts_do_not_matter() -> None:
    x, weight = drawn(6, 7, 4), drawn(7, 6, 4).transpose(0, 1)
    exact = (x * weight).sum()
    for a, b in ((x, weight), (x.mT, weight.mT), (x[:, 1::2], weight[:, 1::2])):
        assert_close(weighted_sum(a, b), (a * b).sum())
    flat, other = x.flatten()[1:], weight.flatten()[1:]
    assert_close(weighted_sum(flat, other), (flat * other).sum())
    assert_close(weighted_sum(weight, x), exact)


def test_same_bits_for_any_number_of_threads() -> None:
    x, weight = drawn(300_001).float(), drawn(300_001).cos().float()
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = weighted_sum(x, weight)
        torch.set_num_threads(2)
        together = weighted_sum(x, weight)
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(alone, together)


@pytest.mark.parametrize("shape", [(3, 4), (0, 2), ()])
def test_derivatives(shape: tuple[int, ...]) -> None:
    x, weight = drawn(*shape).requires_grad_(), drawn(*shape).cos().requires_grad_()
    assert gradcheck(weighted_sum, (x, weight))
    assert gradgradcheck(weighted_sum, (x, weight))


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients(dtype: torch.dtype) -> None:
    x = drawn(4, 5).to(dtype).mT.requires_grad_()
    weight = drawn(5, 4).cos().to(dtype).requires_grad_()
    y = weighted_sum(x, weight)
    g = torch.tensor(1.5, dtype=dtype)
    of_x, of_weight = grad(y, (x, weight), g, retain_graph=True)
    assert_close(of_x, 1.5 * weight.detach())
    assert_close(of_weight, 1.5 * x.detach())
    assert_close(grad(y, weight, g)[0], 1.5 * x.detach())


def test_any_order_of_derivative() -> None:
    """(Σ w·x)³ has the third derivative 6·w³ for one element."""
    x, weight = drawn(1).requires_grad_(), drawn(1).cos()
    value = weighted_sum(x, weight) ** 3
    for _ in range(3):
        (value,) = grad(value.sum(), x, create_graph=True)
    assert_close(value.detach(), 6 * weight**3)


def test_opcheck_and_compile() -> None:
    x, weight = drawn(6).requires_grad_(), drawn(6).cos().requires_grad_()
    torch.library.opcheck(torch.ops.gradlint.weighted_sum.default, (x, weight))
    torch.library.opcheck(
        torch.ops.gradlint.weighted_sum_backward.default, (drawn().requires_grad_(), x)
    )
    y = torch.compile(weighted_sum, backend="aot_eager", fullgraph=True)(x, weight)
    assert_close(grad(y, (x, weight)), (weight.detach(), x.detach()))
