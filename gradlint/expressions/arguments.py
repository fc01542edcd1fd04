"""``--inputs "randn(3, 4), randn(5, 4), None, dim=-1"``: the arguments of one call."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from gradlint.expressions.compile import Expression, checked, parse
from gradlint.expressions.limits import ExpressionError


@dataclass(frozen=True)
class Arguments:
    """The arguments of one call, each an expression.

    Args:
        text: as written.
        positional: one expression an argument.
        keywords: name → expression.
    """

    text: str
    positional: tuple[Expression, ...]
    keywords: dict[str, Expression]


def parse_arguments(text: str) -> Arguments:
    """Read the arguments of a call as they would stand between its parentheses.

    Args:
        text: for instance ``randn(3, 4), None, dim=-1``, or one tuple ``(randn(3), 2)``.

    Raises:
        ExpressionError: it can't be read or uses what is not allowed.
    """
    tree = parse(text, before="f(", after=")")
    whole = isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name)
    if not isinstance(tree, ast.Call) or not whole or tree.func.col_offset != -2:
        raise ExpressionError(
            "these are not the arguments of one call: a bracket is unbalanced", text=text
        )
    positional = tree.args
    if len(positional) == 1 and not tree.keywords and isinstance(positional[0], ast.Tuple):
        positional = positional[0].elts
    keywords: dict[str, Expression] = {}
    for keyword in tree.keywords:
        if keyword.arg is None or keyword.arg.startswith("_"):
            what = "`**`" if keyword.arg is None else f"`{keyword.arg}`"
            raise ExpressionError(
                f"{what} is not allowed as a keyword argument",
                text=text,
                column=keyword.col_offset + 1,
            )
        keywords[keyword.arg] = checked(text, keyword.value, ())
    return Arguments(text, tuple(checked(text, part, ()) for part in positional), keywords)
