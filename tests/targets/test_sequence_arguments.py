"""Constructors that take sequences of sizes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gradlint.targets._construct import construct
from gradlint.targets._sequence_arguments import sequence_lengths


class Indexed(nn.Module):
    def __init__(self, shape, width):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(shape[0], shape[2], width))


class Unpacked(nn.Module):
    def __init__(self, rows, columns):
        super().__init__()
        (a, b), (c, d, e) = rows, columns
        self.weight = nn.Parameter(torch.zeros(a, b, c, d, e))


class Spread(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(*size))


class Layers(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(3, width) for width in widths)


class Either(nn.Module):
    def __init__(self, size):
        super().__init__()
        if isinstance(size, int):
            size = (size, size)
        self.weight = nn.Parameter(torch.zeros(size[0], size[1]))


class Plain(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.table = {}
        self.weight = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return x[0]


@pytest.mark.parametrize(
    ("cls", "lengths"),
    [
        (Indexed, {"shape": 3}),
        (Unpacked, {"rows": 2, "columns": 3}),
        (Spread, {"size": 2}),
        (Layers, {"widths": 2}),
        (Either, {}),
        (Plain, {}),
    ],
)
def test_a_constructor_shows_how_many_elements_it_reads(cls, lengths):
    names = [name for name in cls.__init__.__code__.co_varnames if name != "self"]
    assert sequence_lengths(cls, names) == lengths


def test_sizes_in_sequences_differ():
    module, values = construct(Unpacked)
    assert values == {"rows": (4, 3), "columns": (6, 5, 7)}
    assert module.weight.shape == (4, 3, 6, 5, 7)
    assert construct(Indexed)[1] == {"shape": (4, 3, 6), "width": 5}


def test_what_may_be_an_integer_is_given_one():
    assert construct(Either)[1] == {"size": 4}
    assert construct(Plain)[1] == {"width": 4}
