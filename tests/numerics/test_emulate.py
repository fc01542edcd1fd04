"""Emulated rounding: right on average, exact where nothing is rounded, errors of kernels kept."""

from __future__ import annotations

import pytest
import torch

from gradlint.numerics.emulated_rounding import LONGEST_RUN, Rounding

BF16 = torch.bfloat16


def emulated(function, *values, seed=0, narrow=BF16, noise=1.0):
    mode = Rounding(torch.float64, narrow, torch.Generator().manual_seed(seed), noise)
    with mode:
        found = function(*values)
    return found, mode


def on_grid(value, dtype=BF16):
    return torch.equal(value.to(dtype).to(value.dtype), value)


@pytest.mark.parametrize("narrow", [BF16, torch.float16, torch.float32])
def test_results_lie_on_the_grid_beside_the_exact_ones(randn, narrow):
    x = randn(200).to(narrow).double()
    found, mode = emulated(lambda t: t.exp() * t, x, narrow=narrow)
    assert on_grid(found, narrow)
    exact = x.exp() * x
    assert float((found / exact - 1).abs().max()) < 3 * torch.finfo(narrow).eps
    assert not mode.unseen


def test_rounding_is_right_on_average():
    x = torch.full((20000,), 0.3).to(BF16).double()
    found, _ = emulated(lambda t: t * t, x)
    exact = float(x[0] ** 2)
    assert set(found.tolist()) == {
        number for number in set(found.tolist()) if abs(number / exact - 1) < 2.0**-7
    }
    assert len(set(found.tolist())) == 2
    assert float(found.mean()) == pytest.approx(exact, rel=2e-4)


@pytest.mark.parametrize(
    "function",
    [
        torch.relu,
        lambda t: t.sort().values,
        lambda t: t.amax(),
        lambda t: (t == t.amax()).double(),
        lambda t: -t[::2] * 2,
        lambda t: torch.where(t > 0, t, torch.zeros_like(t)),
    ],
)
def test_what_is_exact_stays_exact(randn, function):
    x = randn(50).to(BF16).double()
    found, _ = emulated(function, x, noise=4.0)
    assert torch.equal(found, function(x))


def test_float32_inside_is_not_rounded_until_it_comes_back(randn):
    x = randn(100).to(BF16).double()
    seen = []

    def function(t):
        wide = t.float().exp()
        seen.append(wide)
        return wide.to(t.dtype)

    found, _ = emulated(function, x)
    assert torch.equal(seen[0], x.float().exp())
    assert on_grid(found)


def test_numbers_made_into_tensors_are_rounded_as_they_would_have_been():
    found, mode = emulated(lambda: torch.tensor([0.1], dtype=torch.float64) * 1.0)
    assert on_grid(found)
    assert not mode.unseen


def test_in_place_results_are_rounded_where_they_are(randn):
    x = randn(30).to(BF16).double()

    def function(t):
        out = torch.ones_like(t)
        out[:10].mul_(t[:10]).exp_()
        return out

    found, _ = emulated(function, x)
    assert on_grid(found)
    assert torch.equal(found[10:], torch.ones(20).double())
    assert float((found[:10] / x[:10].exp() - 1).abs().max()) < 0.01


def test_the_error_of_a_kernel_is_taken_over(randn):
    """index_add adds up in bfloat16 itself, term by term: hundreds of roundings."""
    x = randn(4000).to(BF16).double()
    bins = torch.arange(4000) % 4

    def function(t):
        return t.new_zeros(4).index_add(0, bins, t)

    exact = function(x)
    own = (function(x.to(BF16)).double() - exact).abs()
    moves = torch.stack([(emulated(function, x, seed=k)[0] - exact).abs() for k in range(8)])
    assert bool((moves.amax(0) >= 0.5 * own).all())


def test_work_out_of_sight_is_noticed(randn):
    x = randn(40).to(torch.float32).double()

    def through_numpy(t):
        return torch.from_numpy(t.numpy() ** 2 / 3) * 2.0

    _, mode = emulated(through_numpy, x, narrow=torch.float32)
    assert mode.unseen


def test_a_kernel_that_is_handed_memory_leaves_everything_but_its_results_alone(randn):
    x = randn(40).to(BF16).double()
    before = x.clone()

    def kernel(source, target):
        def shown(tensor):  # as Triton's interpreter does
            storage = tensor.untyped_storage()
            return tensor.new_empty(0).set_(storage, 0, tensor.shape, tensor.stride())

        there, here = shown(target), shown(source)
        there.numpy()[:] = here.numpy() ** 2

    def function(t):
        y, z = torch.empty_like(t), torch.empty_like(t)
        kernel(t, y)
        kernel(y, z)
        return y, z

    (y, z), mode = emulated(function, x)
    assert mode.unseen
    assert torch.equal(x, before)
    assert on_grid(y)  # rounded where the second kernel took it
    assert float((y / before**2 - 1).abs().max()) < 2.0**-7
    assert torch.equal(z, y**2)


def test_long_runs_end_exact():
    mode = Rounding(torch.float64, BF16, torch.Generator().manual_seed(0))
    mode.calls = LONGEST_RUN - 1
    with mode:
        one = torch.ones(1).double()
        found = one / 3.0
    assert mode.calls == LONGEST_RUN
    assert float(found) == 1.0 / 3.0


def test_the_op_s_own_random_numbers_stay(randn):
    x = randn(50).to(BF16).double()
    torch.manual_seed(3)
    plain = torch.rand(5)
    torch.manual_seed(3)
    emulated(lambda t: t.exp(), x)
    assert torch.equal(torch.rand(5), plain)
    torch.manual_seed(3)
    mask = torch.nn.functional.dropout(torch.ones(50).double(), 0.5)
    torch.manual_seed(3)
    found, _ = emulated(lambda t: torch.nn.functional.dropout(t, 0.5), torch.ones(50).double())
    assert torch.equal(found, mask)


def test_complex_numbers(randn):
    x = randn(20, dtype=torch.complex128).to(torch.complex64).to(torch.complex128)
    found, _ = emulated(lambda t: t * t, x, narrow=torch.float32)
    assert torch.equal(found.to(torch.complex64).to(torch.complex128), found)
    assert float((found - x * x).abs().max()) < 1e-5
