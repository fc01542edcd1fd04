"""Which statements and ways of a function count."""

from __future__ import annotations

import ast
import textwrap

import pytest

from gradlint.targets.executable import executable


def places(text: str) -> tuple[list[int], list[tuple[int, str, bool]]]:
    """Lines of the statements below ``def``, and the ways, of a function with this body."""
    source = "def f(ctx, x, mask=None):\n" + textwrap.indent(textwrap.dedent(text).strip(), "    ")
    (node,) = ast.parse(source).body
    assert isinstance(node, ast.FunctionDef)
    found = executable(node)
    lines = [extent[0] - 1 for extent in found.statements]
    return lines, [(way.line - 1, way.condition, way.outcome) for way in found.ways]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("'''Text.'''\ny = x\nreturn y", [2, 3]),
        ("if x.dim() > 2:\n    raise ValueError('no')\nreturn x", [1, 3]),
        ("if bad:\n    text = 'no'\n    raise ValueError(text)\nreturn x", [1, 4]),
        ("if odd:\n    warnings.warn('odd')\nreturn x", [1, 3]),
        ("if odd:\n    pass\nelse:\n    x = x * 2\nreturn x", [1, 4, 5]),
        ("if TYPE_CHECKING:\n    import a\nreturn x", [1, 3]),
        ("if torch.jit.is_scripting():\n    x = a(x)\nelse:\n    x = b(x)\nreturn x", [1, 4, 5]),
        ("try:\n    y = a(x)\nexcept E:\n    y = b(x)\nreturn y", [2, 4, 5]),
        ("gx = gw = None\nif a:\n    gx = x\nelse:\n    gw = None\nreturn gx, gw", [2, 3, 6]),
        ("with a(x) as y:\n    z = y\nreturn z", [1, 2, 3]),
        ("for i in x:\n    y = i\nelse:\n    y = 1\nreturn y", [1, 2, 4, 5]),
        ("def inner(y):\n    return y\nreturn inner(x)", [3]),
        ("raise NotImplementedError", []),
        ("match x:\n    case 1:\n        y = 2\nreturn y", [1, 3, 4]),
    ],
)
def test_statements(text: str, lines: list[int]) -> None:
    assert places(text)[0] == lines


@pytest.mark.parametrize(
    ("text", "ways"),
    [
        ("if mask is not None:\n    x = x * mask\nreturn x", [(1, "mask is not None", False)]),
        ("if a:\n    x = 1\nelse:\n    x = 2\nreturn x", []),
        ("if a:\n    x = 1\nelif b:\n    x = 2\nreturn x", [(3, "b", False)]),
        ("if bad:\n    raise ValueError\nreturn x", []),
        ("if a:\n    return x\nreturn x * 2", []),
        ("if ctx.needs_input_grad[0]:\n    x = x * 2\nreturn x", []),
        ("return x * 2 if a else x", [(1, "a", True), (1, "a", False)]),
        ("return x * 2 if a else None", [(1, "a", True)]),
        ("k = 1.0 if a else -1\nreturn x * k", []),
        ("return x * 2 if ctx.needs_input_grad[0] else x", []),
        ("return [a if b else c for a in x]", []),  # the comprehension is code of its own
    ],
)
def test_ways(text: str, ways: list[tuple[int, str, bool]]) -> None:
    assert places(text)[1] == ways
