"""Sizes that have to be multiples, where a remainder that is not zero raises."""

from __future__ import annotations

import pytest
import torch

from gradlint.inputs._infer import infer
from gradlint.inputs.not_found import NoInputsFound
from gradlint.targets.build import from_object


class Pooled(torch.nn.Module):
    """x (B, H, W, C)."""

    def __init__(self, window: int = 2):
        super().__init__()
        self.window = window

    def forward(self, x):
        b, h, w, c = x.shape
        k = self.window
        if h % k or w % k:
            raise ValueError("height and width are multiples of the window")
        return x.reshape(b, h // k, k, w // k, k, c).mean((2, 4))


class Never(Pooled):
    def forward(self, x):
        if x.shape[0] % 2 or not x.shape[0] % 2:
            raise ValueError("nothing is right")
        return x


@pytest.mark.parametrize("window", [2, 4])
def test_a_remainder_that_raises_asks_for_multiples(window):
    (x,) = infer(from_object(Pooled(window)), 0)[0].args
    assert x.dim() == 4
    assert x.shape[1] % window == x.shape[2] % window == 0
    assert x.shape[1] != x.shape[2]


def test_what_nothing_satisfies_is_refused():
    with pytest.raises(NoInputsFound):
        infer(from_object(Never()), 0)
