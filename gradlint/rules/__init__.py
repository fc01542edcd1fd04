"""Rules: one defect, one file; and the table of them all."""

from gradlint.rules._rule import HEADINGS, Outcome, Rule
from gradlint.rules._table import TABLE, by_code, select_rules, unknown_selectors

__all__ = [
    "HEADINGS",
    "TABLE",
    "Outcome",
    "Rule",
    "by_code",
    "select_rules",
    "unknown_selectors",
]
