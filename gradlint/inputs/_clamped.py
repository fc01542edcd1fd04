"""Between which numbers a forward clamps, as its code shows.

The lower end is below the upper one, whatever the two are called, and what a quantizer rounds is
clamped to whole numbers: to what lies between these, it would round beyond its own ends.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_CLAMPS = frozenset({"clamp", "clip", "clamp_", "clip_"})
_ROUNDS = frozenset({"round", "floor", "ceil", "trunc", "round_", "floor_", "ceil_", "trunc_"})


@dataclass(frozen=True)
class Ends:
    """The names between which something is clamped.

    Args:
        low, high: of the ends.
        whole: whether what is clamped is rounded before or after that.
    """

    low: str
    high: str
    whole: bool


def clamped_ends(tree: ast.AST) -> Iterator[Ends]:
    """The ends of each clamp in ``tree`` that has two names for them."""
    held: dict[str, list[ast.expr]] = {}
    calls: list[ast.Call] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            held.setdefault(node.targets[0].id, []).append(node.value)
        elif isinstance(node, ast.Call):
            calls.append(node)
    rounding = [call for call in calls if _called(call) in _ROUNDS]
    rounded = {id(item) for call in rounding for item in _given(_subject(call), held)}
    for call in calls:
        low, high = _ends(call) if _called(call) in _CLAMPS else (None, None)
        if isinstance(low, ast.Name) and isinstance(high, ast.Name):
            before = any(item in rounding for item in _given(_subject(call), held))
            yield Ends(low.id, high.id, before or id(call) in rounded)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _is_of_torch(call: ast.Call) -> bool:
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    return isinstance(owner, ast.Name) and owner.id == "torch"


def _subject(call: ast.Call) -> ast.expr | None:
    """What a function of torch, or a method, is called on."""
    if _is_of_torch(call):
        return call.args[0] if call.args else None
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def _ends(call: ast.Call) -> tuple[ast.expr | None, ast.expr | None]:
    given = [*call.args[1 if _is_of_torch(call) else 0 :], None, None][:2]
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    return given[0] or named.get("min"), given[1] or named.get("max")


def _given(node: ast.expr | None, held: dict[str, list[ast.expr]]) -> list[ast.expr]:
    """What a local name was given; another expression alone."""
    if isinstance(node, ast.Name):
        return held.get(node.id, [])
    return [] if node is None else [node]
