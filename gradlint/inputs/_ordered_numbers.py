"""Arguments of which one is below another, by how the code scales: ``(x - low) / (high - low)``."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from gradlint.inputs._evidence import Evidence
from gradlint.inputs._plan import Plan, ValueGuess
from gradlint.targets.nodes import source_text


def ordered_numbers(thing: Any, names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Pairs of ``names``, the lesser first, for which the code of a class or function maps the
    range from one to the other to that from zero to one."""
    try:
        tree = ast.parse(textwrap.dedent(source_text(thing)))
    except Exception:  # of a source that is not there or can't be read: anything
        return
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(
                ast.BinOp(_, ast.Sub(), ast.Name(start)),
                ast.Div(),
                ast.BinOp(ast.Name(high), ast.Sub(), ast.Name(low)),
            ) if start == low and {low, high} <= set(names):
                yield low, high


def in_order(plan: Plan, evidence: Mapping[str, Evidence]) -> Plan:
    """``plan`` with numbers that are above those which are less by what the code does."""
    for name, item in evidence.items():
        for low in sorted(item.above):
            least, guess = plan.guess(low), plan.guess(name)
            if not (isinstance(least, ValueGuess) and isinstance(guess, ValueGuess)):
                continue
            if is_number(least.value) and is_number(guess.value) and guess.value <= least.value:
                above = least.value + (abs(guess.value) or 1)
                plan = plan.changed(name, replace(guess, value=above), 0.0)
    return plan


def keeps_order(name: str, value: Any, given: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    """Whether a value for ``name`` is above and below the numbers that it should be, of those
    ``given`` for other arguments.

    Args:
        known: parameter → its evidence.
    """
    if not is_number(value):
        return True
    less = (given.get(low) for low in known[name].above)
    more = (given.get(other) for other, item in known.items() if name in item.above)
    return all(one < value for one in less if is_number(one)) and all(
        value < one for one in more if is_number(one)
    )


def is_number(value: Any) -> bool:
    """Whether a value is a plain number."""
    return type(value) in (int, float)
