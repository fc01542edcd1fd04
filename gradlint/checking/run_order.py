"""The order in which rules run on a sample: cheap and telling ones first."""

from __future__ import annotations

from collections.abc import Iterable

from gradlint.model.rule import Rule

#: Beginnings of codes, in the order in which their rules run; the longest that fits counts. First
#: what the instrumented run shows by itself (GL0 to GL3), then values, which everything else is
#: compared with, then a call or two each for state, inputs that need no gradient, and layout.
#: Second order, special points and resized samples take tens of calls, transforms a compiler.
RUN_ORDER = (
    "GL0",
    "GL1",
    "GL2",
    "GL3",
    "GL4",
    "GL6",
    "GL110",
    "GL70",
    "GL303",
    "GL402",
    "GL5",
    "GL705",
    "GL706",
    "GL707",
    "GL8",
    "GL9",
)


def in_run_order(rules: Iterable[Rule]) -> list[Rule]:
    """``rules`` in the order of :data:`RUN_ORDER`, within one entry by code."""
    return sorted(rules, key=lambda rule: (turn(rule.code), rule.code))


def turn(code: str) -> int:
    """Position of ``code`` in :data:`RUN_ORDER`; last where nothing there fits."""
    fitting = [prefix for prefix in RUN_ORDER if code.startswith(prefix)]
    return RUN_ORDER.index(max(fitting, key=len)) if fitting else len(RUN_ORDER)
