"""``gradlint explain``: what a rule finds, why it matters, a bad and a good example."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from gradlint.cli.options import TextOrJson


def explain(
    codes: Annotated[
        list[str],
        typer.Argument(
            metavar="CODE",
            help="Codes (GL401), prefixes (GL4) or names of rules; or `severity`: what makes a "
            "finding an error, a warning or information.",
        ),
    ],
    output_format: TextOrJson = "text",
) -> None:
    """Say what a rule finds, why it matters, and show a bad and a good example."""
    from gradlint.report.explain import add_rule, find_rules, rule_dict
    from gradlint.report.render import stream_options
    from gradlint.report.text import Page
    from gradlint.rules.catalogue import CATALOGUE

    if codes == ["severity"]:
        _explain_severity(output_format)
        return
    rules = find_rules(codes, CATALOGUE)
    if output_format == "json":
        sys.stdout.write(
            json.dumps([rule_dict(rule, text=True) for rule in rules], indent=2) + "\n"
        )
        return
    options = stream_options(sys.stdout)
    page = Page(options["width"], ascii=options["ascii"])
    for number, rule in enumerate(rules):
        if number:
            page.blank()
            page.line("-" * min(page.width, 72), "dim")
            page.blank()
        add_rule(page, rule, color=options["color"])
    sys.stdout.write(page.text(color=options["color"]))


def _explain_severity(output_format: str) -> None:
    from gradlint.checking.severity import TABLE
    from gradlint.report.render import stream_options
    from gradlint.report.table import table
    from gradlint.report.text import Page

    if output_format == "json":
        sys.stdout.write(json.dumps(dict(TABLE), indent=2) + "\n")
        return
    options = stream_options(sys.stdout)
    page = Page(options["width"], ascii=options["ascii"])
    table(page, ("severity", "when"), [list(row) for row in TABLE], wrapped=True)
    sys.stdout.write(page.text(color=options["color"]))
