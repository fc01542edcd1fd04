"""Which inputs forward divides by, at zeros of theirs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from gradlint.trace.divisions import Divisions, ZeroDivisors

X = torch.tensor([[0.7, -1.3, 0.4], [0.0, 1.6, -2.4]])
RATE = torch.tensor([0.5, 0.0, 1.1])


def watched(function: Callable[[Tensor, Tensor], object]) -> Divisions:
    found = Divisions([X, RATE])
    with found:
        function(X.clone(), RATE.clone())
    return found


@pytest.mark.parametrize(
    "function",
    [
        lambda x, rate: x / rate,
        lambda x, rate: (x + 1.0) / (2.0 * rate[None, :].abs()) ** 2,
        lambda x, rate: x * rate.reciprocal(),
        lambda x, rate: x * rate.unsqueeze(0).expand(2, 3) ** -0.5,
        lambda x, rate: x[0, 0] / rate[1],
        lambda x, rate: x / (rate * rate),
    ],
)
def test_poles(function: Callable[[Tensor, Tensor], object]) -> None:
    assert watched(function).poles == {1}


@pytest.mark.parametrize(
    "function",
    [
        lambda x, rate: x / (rate + 0.1),  # no zeros
        lambda x, rate: x / rate.sum(),  # not the input itself
        lambda x, rate: x / x.norm(dim=-1, keepdim=True),
        lambda x, rate: torch.sin(x) / x,  # 0 / 0 in as many elements as the input has
        lambda x, rate: rate / 3.0,
    ],
)
def test_near_misses(function: Callable[[Tensor, Tensor], object]) -> None:
    found = watched(function)
    assert (found.poles, found.stretched) == (set(), set())


def test_zeros_over_zeros_of_one_parameter_for_many_elements() -> None:
    assert watched(lambda x, rate: torch.sin(rate * x) / rate).stretched == {1}
    assert watched(lambda x, rate: torch.sin(rate) / rate).stretched == set()


@pytest.mark.parametrize(
    ("function", "vanishing"),
    [
        # Products with and quotients over what is not zero have the zeros of the input.
        (lambda x, rate: torch.sin(rate * 3.0) / torch.sinh(rate * torch.arange(1.0, 4.0)), {1}),
        (lambda x, rate: rate / (rate / torch.arange(1.0, 4.0)), {1}),
        (lambda x, rate: rate[:, None] / (rate[:, None] * torch.arange(1.0, 9.0)), {1}),
        (lambda x, rate: (x * rate) / (x * rate), set()),  # zeros of both
        (lambda x, rate: (1.0 / rate) / (1.0 / rate), set()),  # infinite there
    ],
)
def test_zeros_of_products(
    function: Callable[[Tensor, Tensor], object], vanishing: set[int]
) -> None:
    found = watched(function)
    assert (found.vanishing, found.stretched) == (vanishing, set())


def test_guards_are_seen() -> None:
    guarded = watched(lambda x, rate: torch.where(rate > 0, x / rate, x))
    assert (guarded.poles, guarded.compared, guarded.looks) == ({1}, {1}, False)
    assert watched(lambda x, rate: torch.where(x > 0, x / rate, x)).compared == {0}
    assert watched(lambda x, rate: torch.nan_to_num(x / rate)).looks


@pytest.mark.parametrize(
    ("function", "compared"),
    [
        (lambda x, rate: torch.where(rate == 0, x, x / rate), {1}),
        (lambda x, rate: torch.where(rate.abs() < 1e-6, x, x / rate), {1}),
        (lambda x, rate: x / rate * (rate < 5.0), set()),  # a cutoff
        (lambda x, rate: x / rate * (rate < torch.full((3,), 5.0)), set()),
        (lambda x, rate: x / rate * (torch.zeros(3) < rate), {1}),
        (lambda x, rate: x / rate * (rate > x), {0, 1}),  # data: nothing is known
    ],
)
def test_only_bounds_near_zero_guard_zeros(
    function: Callable[[Tensor, Tensor], object], compared: set[int]
) -> None:
    found = watched(function)
    assert (found.poles, found.compared) == ({1}, compared)


def test_elements_selected_from_an_input_are_its_own() -> None:
    # 0.5 / 0.5 and 0 / 0; then 1.1 / 0.
    first = watched(lambda x, rate: rate[:2] / rate.cummin(0).values[:2])
    assert (first.poles, first.stretched) == (set(), {1})
    assert watched(lambda x, rate: rate / rate.cummin(0).values).poles == {1}
    assert watched(lambda x, rate: x / rate.amin()).poles == {1}
    assert watched(lambda x, rate: x / rate.abs().min(-1, keepdim=True).values).poles == {1}
    # The largest element is not zero, and a sum is no element.
    found = watched(lambda x, rate: x / rate.amax() + x / rate.cumsum(0))
    assert (found.poles, found.stretched) == (set(), set())


def test_zeros_over_zeros_of_single_elements_are_told_apart() -> None:
    found = watched(lambda x, rate: torch.sin(x) / x)
    assert (found.vanishing, found.stretched) == ({0}, set())
    assert watched(lambda x, rate: x / rate).vanishing == set()


@pytest.mark.parametrize(
    ("function", "infinite"),
    [
        (lambda x: x ** (1 / (torch.tensor(1.0) - 1)), True),
        (lambda x: x / 0.0, True),
        (lambda x: x * torch.zeros(()) ** -1, True),
        (lambda x: x / (x - x), True),
        (lambda x: x / torch.tensor([1.0, 0.0, 2.0]), False),  # not all zeros
        (lambda x: x * 0.0 / (torch.tensor(1.0) - 1), False),  # 0 / 0 says nothing
        (lambda x: x ** torch.zeros(()), False),
        (lambda x: x * 0.0 + 1.0 / 3.0, False),
    ],
)
def test_quotients_by_nothing_but_zeros(
    function: Callable[[Tensor], object], infinite: bool
) -> None:
    found = ZeroDivisors()
    with found:
        function(torch.tensor([[0.7, -1.3, 0.4], [0.2, 1.6, -2.4]]))
    assert found.infinite is infinite


@torch.library.custom_op("gradlint_divisions::scaled_sinc", mutates_args=())
def scaled_sinc(x: Tensor, rate: Tensor) -> Tensor:
    return rate * torch.sin(x) / x


@scaled_sinc.register_fake
def _(x: Tensor, rate: Tensor) -> Tensor:
    return torch.empty_like(x)


def test_the_inside_of_a_custom_op_is_seen() -> None:
    found = watched(scaled_sinc)
    assert found.vanishing == {0}
    assert not found.poles
    x = torch.tensor([0.5, 2.0])
    with Divisions([x, RATE]):
        assert torch.equal(scaled_sinc(x, x), torch.sin(x))
