"""Ranks that equations such as ``"bij,bjk->bik"`` or ``"b (h w) c -> b c h w"`` tell."""

from __future__ import annotations

import ast
import re

from gradlint.inputs._source import literal

#: Functions of einops that take a tensor and a pattern.
_PATTERNS = frozenset({"rearrange", "reduce", "repeat"})


def operand(call: ast.Call, position: int) -> tuple[ast.expr, int] | None:
    """Operand ``position`` of a call to einsum, with the number of axes that its equation gives it;
    None where there is none, or an ellipsis stands for any number."""
    if not ast.unparse(call.func).endswith("einsum") or not call.args:
        return None
    known, equation = literal(call.args[0])
    operands = call.args[1:]
    if len(operands) == 1 and isinstance(operands[0], (ast.Tuple, ast.List)):
        operands = operands[0].elts
    if not known or not isinstance(equation, str) or position >= len(operands):
        return None
    terms = equation.split("->")[0].split(",")
    if position >= len(terms) or "." in terms[position]:
        return None
    return operands[position], sum(letter.isalpha() for letter in terms[position])


def rank_wanted(call: ast.Call, key: int | str) -> int | None:
    """The number of axes that the argument ``key`` of ``call`` has by an equation in the call."""
    name = ast.unparse(call.func).rsplit(".", 1)[-1]
    if name == "einsum" and isinstance(key, int) and key:
        found = operand(call, key - 1)
        return found[1] if found else None
    if name in _PATTERNS and key == 0 and len(call.args) > 1:
        known, pattern = literal(call.args[1])
        if known and isinstance(pattern, str) and "->" in pattern and "..." not in pattern:
            left = re.sub(r"\([^()]*\)", "x", pattern.split("->")[0])
            return len(left.split())
    return None
