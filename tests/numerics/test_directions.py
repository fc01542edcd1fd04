"""Directions and cotangents: signed, seeded, and blind to nothing."""

from __future__ import annotations

import pytest
import torch

from gradlint.numerics.directions import (
    COTANGENT_SPREAD,
    KINDS,
    SMALLEST_RELATIVE_MOVE,
    cotangent,
    direction,
    move_scale,
    product_norm,
    signs,
)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_move_scale_is_the_magnitude_with_a_floor():
    x = torch.tensor([3.0, -4.0, 0.0, 1e-9])
    scale = move_scale(x)
    assert scale[:2].tolist() == [3.0, 4.0]
    floor = SMALLEST_RELATIVE_MOVE * 2.5  # RMS of the four
    assert scale[2:].tolist() == pytest.approx([floor, floor])
    assert move_scale(torch.zeros(3)).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.complex128])
def test_directions_stay_within_the_scale_and_are_seeded(kind, dtype, randn):
    x, g = randn(6, 5, dtype=dtype), randn(6, 5, seed=1, dtype=dtype)
    u = direction(kind, x, g, generator())
    assert u.dtype == (torch.complex128 if dtype.is_complex else torch.float64)
    assert bool((u.abs() <= move_scale(x) * (1 + 1e-12)).all())
    assert torch.equal(u, direction(kind, x, g, generator()))
    if kind != "aligned":
        assert not torch.equal(u, direction(kind, x, g, generator(1)))


@pytest.mark.parametrize("kind", ["signs", "equalised", "random"])
def test_both_signs_occur(kind, randn):
    u = direction(kind, randn(400), randn(400, seed=1), generator())
    share = float((u > 0).double().mean())
    assert 0.4 < share < 0.6


def test_aligned_never_cancels(randn):
    x, g = randn(300), randn(300, seed=1)
    u = direction("aligned", x, g, generator())
    products = u * g
    assert bool((products >= 0).all())
    assert float(products.sum()) > 4 * product_norm(g, u)


def test_signs_move_every_element_by_all_it_may(randn):
    x = randn(50)
    u = direction("signs", x, torch.zeros_like(x), generator())
    assert torch.equal(u.abs(), move_scale(x))


def test_equalised_gives_small_gradients_their_weight():
    x = torch.ones(100, dtype=torch.float64)
    g = torch.logspace(-6, 6, 100, dtype=torch.float64)
    products = (direction("equalised", x, g, generator()) * g).abs()
    assert float(products[50:].max() / products[50:].min()) < 1.0 + 1e-9
    assert float(products.max() / products.median()) < 1.0 + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_a_claimed_gradient_of_zero_or_nan_still_gives_a_direction(kind, randn):
    x = randn(8)
    for claimed in (torch.zeros(8), torch.full((8,), float("nan"))):
        u = direction(kind, x, claimed, generator())
        assert bool(torch.isfinite(u).all())
        assert int((u != 0).sum()) == 8


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,)])
def test_degenerate_shapes(kind, shape):
    x = torch.ones(shape, dtype=torch.float64)
    assert direction(kind, x, x, generator()).shape == shape


def test_complex_signs_are_unit_phases():
    drawn = signs(torch.zeros(200, dtype=torch.complex64), generator())
    assert torch.allclose(drawn.abs(), torch.ones(200, dtype=torch.float64))
    assert abs(complex(drawn.mean())) < 0.2


@pytest.mark.parametrize("scale", [1e-200, 1e-12, 1.0, 1e12, 1e200])
def test_cotangents_are_signed_and_weigh_outputs_alike(scale, randn):
    y = randn(400) * scale
    v = cotangent(y, generator())
    weighed = float((v.abs() * y.abs()).mean())
    assert 0.3 < weighed < 2.0
    assert 0.4 < float((v > 0).double().mean()) < 0.6
    spread = v.abs() / v.abs().mean()
    assert 1 - COTANGENT_SPREAD - 0.1 < float(spread.min()) < float(spread.max())
    assert float(spread.max()) < 1 + COTANGENT_SPREAD + 0.1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
def test_cotangents_have_the_dtype_of_their_output(dtype):
    y = torch.ones(3, dtype=dtype)
    assert cotangent(y, generator()).dtype == dtype
    assert cotangent(y[:0], generator()).shape == (0,)


def test_cotangents_of_outputs_that_are_zero_or_infinite_are_finite():
    for y in (torch.zeros(4), torch.full((4,), float("inf"))):
        v = cotangent(y, generator())
        assert bool(torch.isfinite(v).all())
        assert float(v.abs().min()) >= 1 - COTANGENT_SPREAD


def test_product_norm():
    assert product_norm(torch.tensor([3.0, 0.0]), torch.tensor([1.0, 5.0])) == 3.0
    assert product_norm(torch.tensor([3j]), torch.tensor([4.0])) == 12.0


def test_infinite_elements_do_not_move_and_the_others_move_as_without_them():
    x = torch.tensor([1.0, float("-inf"), -2.0, float("nan"), 0.0], dtype=torch.float64)
    scale = move_scale(x)
    assert scale[[1, 3]].tolist() == [0.0, 0.0]
    assert torch.equal(scale[[0, 2, 4]], move_scale(x[[0, 2, 4]]))
    assert move_scale(torch.full((2,), float("inf"))).tolist() == [0.0, 0.0]
