"""Values of recorded tensors: a domain where they are any numbers of it, else one by one."""

from __future__ import annotations

import pytest
import torch

from gradlint.recorded.values import ranges, structures

torch.manual_seed(0)
REAL = torch.randn(6, 5)
SQUARE = torch.randn(4, 4)


@pytest.mark.parametrize(
    ("values", "domain"),
    [
        ([REAL], "reals"),
        ([REAL.abs() + 0.1], "positive"),
        ([REAL.relu()], "nonnegative"),
        ([-REAL.abs() - 0.1], "negative"),
        ([REAL.sigmoid()], "open unit"),
        # One call alone looks like probabilities; another one does not.
        ([REAL.softmax(-1)], "probability"),
        ([REAL.softmax(-1), REAL], "reals"),
        ([torch.nn.functional.normalize(REAL, dim=-1)], "unit vectors"),
        ([REAL.sort(-1).values], "increasing"),
        ([SQUARE @ SQUARE.mT + torch.eye(4)], "spd"),
        # Constants are placeholders, of their sign.
        ([torch.ones(3)], "positive"),
        ([torch.zeros(3)], "nonnegative"),
        ([torch.tensor(0.5)], "open unit"),
        # Kept one by one: masks, signs, triangles, what is not finite.
        ([(REAL > 0).double()], None),
        ([REAL.sign()], None),
        ([SQUARE.tril()], None),
        ([torch.tensor([1.0, float("inf")])], None),
    ],
)
def test_domains_of_floating_values(values: list[torch.Tensor], domain: str | None) -> None:
    domains, exact = structures({"x": values})
    assert domains == ({} if domain is None else {"x": domain})
    assert exact == (frozenset({"x"}) if domain is None else frozenset())


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ([0, 2, 1, 3], True),  # a permutation
        ([0, 3, 3, 9], True),  # offsets
        ([4, 0, 4, 1], False),  # indices
        ([2, 2, 2], False),
    ],
)
def test_integers_in_an_order_are_kept(values: list[int], kept: bool) -> None:
    _, exact = structures({"index": [torch.tensor(values)]})
    assert exact == (frozenset({"index"}) if kept else frozenset())


def test_intervals_hold_all_values() -> None:
    seen = {"x": [torch.tensor([-3.14159, 250.5]), torch.tensor([1.0])], "p": [REAL.softmax(-1)]}
    found = ranges(seen, {"x": "reals", "p": "probability"})
    assert found == {"x": "[-3.15, 251]", "p": "probability"}
