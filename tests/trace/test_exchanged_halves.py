"""Axes of odd size that are cut into halves, which are exchanged."""

import pytest
import torch

from gradlint.trace.exchanged_halves import ExchangedHalves


def halves(x):
    middle = x.shape[-1] // 2
    return x[..., :middle], x[..., middle:]


def turned(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


def turned_back(x):
    a, b = halves(x)
    return torch.cat((b, -a), dim=-1)


def turned_by_narrow(x):
    middle = x.shape[-1] // 2
    a = x.narrow(-1, 0, middle)
    b = x.narrow(-1, middle, x.shape[-1] - middle)
    return torch.cat((-b, a), -1)


def shifted(x):
    a, b = halves(x)
    return torch.cat((b, a), -1)


def kept_in_order(x):
    a, b = x.chunk(2, -1)
    return torch.cat((a.exp(), -b), -1)


def first_and_rest(x):
    return torch.cat((-x[..., 1:], x[..., :1]), -1)


@pytest.mark.parametrize(
    ("forward", "size", "found"),
    [
        (turned, 5, {5}),
        (turned, 6, set()),
        (turned_back, 5, {5}),
        (turned_back, 4, set()),
        (turned_by_narrow, 7, {7}),
        (shifted, 5, set()),
        (kept_in_order, 5, set()),
        (first_and_rest, 5, set()),
    ],
)
def test_sizes_of_axes_whose_halves_are_exchanged(forward, size, found) -> None:
    watched = ExchangedHalves()
    with watched:
        forward(torch.arange(2.0 * size).reshape(2, size))
    assert watched.sizes == found


def test_the_axis_may_be_any_one() -> None:
    watched = ExchangedHalves()
    with watched:
        a, b = torch.ones(5, 2, 3).chunk(2, 0)
        torch.cat((-b, a), 0)
    assert watched.sizes == {5}
