"""Domains: read from names and intervals, drawn from, and said in the words of reports."""

from __future__ import annotations

import math

import pytest
import torch

from gradlint.inputs.domains import DOMAINS
from gradlint.spec._domains import NAMES, parse_domain
from gradlint.spec._samples import draw

SHAPES = [[], [1], [7], [4, 4], [2, 3, 3], [0, 3]]


def _inside(name: str, x: torch.Tensor) -> bool:
    if not x.numel():
        return True
    last = x.shape[-1] if x.dim() else 0
    tests = {
        "reals": lambda: True,
        "nonzero": lambda: (x != 0).all(),
        "positive": lambda: (x > 0).all(),
        "nonnegative": lambda: (x >= 0).all(),
        "negative": lambda: (x < 0).all(),
        "nonpositive": lambda: (x <= 0).all(),
        "unit": lambda: ((x > 0) & (x < 1)).all(),
        "open unit": lambda: ((x > 0) & (x < 1)).all(),
        "probability": lambda: not last or torch.allclose(x.sum(-1), torch.ones(()).double()),
        "spd": lambda: x.dim() < 2 or x.shape[-2] != last or (torch.linalg.eigvalsh(x) > 0).all(),
        "unit vectors": lambda: not last or torch.allclose(x.norm(dim=-1), torch.ones(()).double()),
        "increasing": lambda: last < 2 or (x.diff(dim=-1) > 0).all(),
    }
    return bool(tests[name]())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", SHAPES)
def test_named_domains_hold_what_is_drawn(name: str, shape: list[int]) -> None:
    made = draw(parse_domain(name), shape, torch.Generator().manual_seed(3))
    assert made.dtype == torch.float64
    assert list(made.shape) == shape
    assert bool(made.isfinite().all())
    assert _inside(name, made)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("[2, 5]", 2, 5),
        ("(2, 5)", 2, 5),
        ("[-1, 1]", -1, 1),
        ("(1, inf)", 1, math.inf),
        ("[3, inf)", 3, math.inf),
        ("(-inf, -2]", -math.inf, -2),
        ("(-inf, inf)", -math.inf, math.inf),
        ("[ -1e-3 , 2.5e2 ]", -1e-3, 250),
        ("[0, 10]", 0, 10),
    ],
)
def test_intervals(text: str, low: float, high: float) -> None:
    domain = parse_domain(text)
    made = draw(domain, [50], torch.Generator().manual_seed(0))
    assert low < float(made.min()) < float(made.max()) < high
    assert len(made.unique()) == 50


def test_lists_are_intervals() -> None:
    assert parse_domain([2, 5]) == parse_domain("[2, 5]")
    assert parse_domain([0, 1]).name == "unit"


@pytest.mark.parametrize("words", DOMAINS.values())
def test_words_of_reports_are_understood(words: str) -> None:
    """What inference says can be written into a spec and comes back in the same words."""
    assert parse_domain(words).words == words


@pytest.mark.parametrize(
    "value",
    [
        *("", "positiv", "[1]", "[1, 2, 3]", "[2, 1]", "[1, 1]", "[nan, 1]", "[1..2, 3]", "[a, b]"),
        *(3, None, [1], [1, "2"], [True, False], {"a": 1}, "[1, 2", "((1, 2))"),
    ],
)
def test_others_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"domain|interval"):
        parse_domain(value)
