"""``--inputs`` expressions: the arguments of one call."""

from __future__ import annotations

import pytest
import torch

from gradlint.expressions.arguments import parse_arguments
from gradlint.expressions.evaluate import evaluate_arguments
from gradlint.expressions.limits import ExpressionError


def test_positional_and_keyword() -> None:
    args, kwargs = evaluate_arguments(
        parse_arguments("randn(3, 4), randn(5, 4), None, 'mean', dim=-1"), 0
    )
    assert [tuple(a.shape) for a in args[:2]] == [(3, 4), (5, 4)]
    assert all(a.dtype == torch.float64 and not a.requires_grad for a in args[:2])
    assert args[2:] == (None, "mean")
    assert kwargs == {"dim": -1}


@pytest.mark.parametrize(
    ("text", "args", "kwargs"),
    [
        ("(1, 2)", (1, 2), {}),
        ("((1, 2),)", ((1, 2),), {}),
        ("(1, 2), 3", ((1, 2), 3), {}),
        ("[1, 2]", ([1, 2],), {}),
        ("{'a': 1}", ({"a": 1},), {}),
        ("()", (), {}),
        ("1,", (1,), {}),
        ("dtype=torch.int64", (), {"dtype": torch.int64}),
        ('dtype="int64"', (), {"dtype": "int64"}),
        ("1,\n  x=2", (1,), {"x": 2}),
        ("(1, 2), x=3", ((1, 2),), {"x": 3}),
    ],
)
def test_plain_values(text: str, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
    assert evaluate_arguments(parse_arguments(text), 0) == (args, kwargs)


def test_seeded() -> None:
    parsed = parse_arguments("randn(3), rand(2), randint(0, 9, (4,))")
    first, again, other = (evaluate_arguments(parsed, seed)[0] for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], other[0])
    assert first[2].dtype == torch.int64


def test_requires_grad_makes_a_leaf() -> None:
    (x, pair), _ = evaluate_arguments(
        parse_arguments("randn(3, requires_grad=True) * 2, [ones(1), ones(1)]"), 0
    )
    assert x.requires_grad
    assert x.is_leaf
    assert not pair[0].requires_grad


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("randn(3), foo(2)", 11, "unknown function `foo`"),
        ("randn(3), x", 11, "unknown name `x`"),
        ("randn(3), __import__('os')", 11, "leading underscore"),
        ("1, *x", 4, "unpacking"),
        ("1, **x", 4, "`**`"),
        ("1, __x=2", 4, "`__x`"),
        ("1), g(2", 1, "unbalanced"),
        ("1)(2", 1, "unbalanced"),
        ("randn(3", 6, "never closed"),
        ("x for x in y", 1, "comprehension"),
        ("", 1, "is empty"),
        ("# nothing", 1, "comment"),
        ("randn(10**9)", 1, "elements"),
    ],
)
def test_refused(text: str, column: int, message: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        parse_arguments(text)
    assert message in raised.value.message
    assert raised.value.column == column
