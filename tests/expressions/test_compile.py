"""What is refused when an expression is compiled: at which column, with which nearest name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gradlint.base.text import nearest
from gradlint.expressions.compile import compile_expression
from gradlint.expressions.evaluate import evaluate
from gradlint.expressions.limits import ExpressionError

#: text, names, column, part of the message, part of the hint.
REFUSED = [
    ("1 + foo", (), 5, "unknown name `foo`", ""),
    ("wieght + 1", ("weight", "x"), 1, "unknown name `wieght`", "`weight`"),
    ("x + y", ("x",), 5, "unknown name `y`", ""),
    ("sofmax(x, -1)", ("x",), 1, "unknown function `sofmax`", "`softmax`"),
    ("1 + torch.sofmax(x)", ("x",), 11, "unknown function `torch.sofmax`", "`softmax`"),
    ("x.trnspose(0, 1)", ("x",), 3, "unknown method `.trnspose`", "`transpose`"),
    ("x.shap", ("x",), 3, "unknown attribute `.shap`", "`shape`"),
    ("x.shape()", ("x",), 3, "unknown method `.shape`", "without parentheses"),
    ("x.sum", ("x",), 3, "is a method", ".sum(…)"),
    ("relu", (), 1, "is a function", "relu(…)"),
    ("torch.relu", (), 7, "is a function", "relu(…)"),
    ("sum(x, dimm=1)", ("x",), 8, "unknown keyword argument `dimm`", "`dim`"),
    ("x(1)", ("x",), 1, "is a value here", ""),
    ("softmax(x)(1)", ("x",), 1, "only functions and methods", ""),
    ("x.softmax(out=x)", ("x",), 11, "unknown keyword argument `out`", ""),
    ("randn(3, generator=x)", ("x",), 10, "unknown keyword argument `generator`", ""),
    ("randn(3, device='cuda')", (), 10, "unknown keyword argument `device`", ""),
    ("x +", ("x",), 3, "can't be read", ""),
    ("(x", ("x",), 1, "never closed", ""),
    ("x y", ("x", "y"), 3, "can't be read", ""),
    ("", (), 1, "is empty", ""),
    ("   \n ", (), 1, "is empty", ""),
    ("x = 1", ("x",), 3, "can't be read", ""),
    ("import os", (), 1, "can't be read", ""),
    ("x; x", ("x",), 2, "can't be read", ""),
]


@pytest.mark.parametrize(("text", "names", "column", "message", "hint"), REFUSED)
def test_refused(text: str, names: tuple[str, ...], column: int, message: str, hint: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        compile_expression(text, names)
    assert message in raised.value.message
    assert raised.value.column == column
    assert hint in raised.value.hint
    assert str(raised.value).startswith(f"column {column}: ")


@pytest.mark.parametrize(
    ("text", "names", "used"),
    [
        ("input @ weight.mT + bias", ("input", "weight", "bias"), {"input", "weight", "bias"}),
        ("e + pi", (), set()),
        ("e + pi", ("e",), {"e"}),
        ("sum(sum)", ("sum",), {"sum"}),
        ("torch.float32", (), set()),
        ("torch.pi * math.e", (), set()),
        ("torch.T", ("torch",), {"torch"}),
        ("x[..., 1:, None]", ("x", "y"), {"x"}),
    ],
)
def test_names(text: str, names: tuple[str, ...], used: set[str]) -> None:
    assert compile_expression(text, names).names == used


def test_columns_count_characters_of_the_text() -> None:
    with pytest.raises(ExpressionError) as raised:
        compile_expression("  é +\n\t  foo", ["é"])
    assert raised.value.column == 10
    assert raised.value.pointed() == "\t  foo\n   ^"


def test_spans_lines_without_brackets() -> None:
    assert evaluate(compile_expression("x +\n\n  1\n", ["x"]), {"x": 2}) == 3


def test_a_comment_would_hide_what_follows() -> None:
    with pytest.raises(ExpressionError, match="comment") as raised:
        compile_expression("x # not y\n + 1", ["x"])
    assert raised.value.column == 3
    assert evaluate(compile_expression("'#'"), {}) == "#"


def test_nearest_ignores_case_and_bounds_its_work() -> None:
    assert nearest("RELU", ["relu", "Elu"]) == ["relu"]
    assert nearest("zzzz", ["relu"]) == []
    assert nearest("x" * 10**7, ["relu"]) == []


def test_compiling_does_not_import_torch() -> None:
    code = (
        "import sys\n"
        "from gradlint.expressions.compile import compile_expression\n"
        "from gradlint.expressions.arguments import parse_arguments\n"
        "compile_expression('softmax(x, -1) + randn(3)', ['x'])\n"
        "parse_arguments('randn(3), dim=-1')\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
