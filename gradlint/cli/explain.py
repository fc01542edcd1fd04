"""``gradlint explain``: what a rule finds, why it matters, a bad and a good example."""

from __future__ import annotations

from typing import Annotated

import typer

from gradlint.cli import console as _console
from gradlint.cli.completion import complete_codes
from gradlint.cli.options import TextOrJson


def explain(
    codes: Annotated[
        list[str],
        typer.Argument(
            metavar="CODE",
            autocompletion=complete_codes,
            help="Codes (GL401), prefixes (GL4) or names of rules; or `severity`: what makes a "
            "finding an error, a warning or information.",
        ),
    ],
    output_format: TextOrJson = "text",
) -> None:
    """Say what a rule finds, why it matters, and show a bad and a good example."""
    from gradlint.report.explain import add_rule, find_rules, rule_dict
    from gradlint.report.text import Page
    from gradlint.rules.catalogue import CATALOGUE

    if codes == ["severity"]:
        _explain_severity(output_format)
        return
    rules = find_rules(codes, CATALOGUE)
    if output_format == "json":
        _console.write_json([rule_dict(rule, text=True) for rule in rules])
        return

    def add(page: Page, color: bool) -> None:
        for number, rule in enumerate(rules):
            if number:
                page.blank()
                page.line("-" * min(page.width, 72), "dim")
                page.blank()
            add_rule(page, rule, color=color)

    _console.write_page(add)


def _explain_severity(output_format: str) -> None:
    from gradlint.checking.severity import TABLE
    from gradlint.report.table import table

    rows = [list(row) for row in TABLE]
    if output_format == "json":
        _console.write_json(dict(TABLE))
    else:
        _console.write_page(lambda page, _: table(page, ("severity", "when"), rows, wrapped=True))
