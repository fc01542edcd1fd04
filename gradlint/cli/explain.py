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
        typer.Argument(metavar="CODE", help="Codes (GL401), prefixes (GL4) or names of rules."),
    ],
    output_format: TextOrJson = "text",
) -> None:
    """Say what a rule finds, why it matters, and show a bad and a good example."""
    from gradlint.report.explain import add_rule, find_rules, rule_dict
    from gradlint.report.render import stream_options
    from gradlint.report.text import Page
    from gradlint.rules.catalogue import CATALOGUE

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
