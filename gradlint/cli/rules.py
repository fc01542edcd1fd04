"""``gradlint rules``: the catalogue."""

from __future__ import annotations

import json
import sys

from gradlint.cli.options import TextOrJson


def rules(
    output_format: TextOrJson = "text",
) -> None:
    """List all rules: code, name, severity, order of derivative, and what each finds."""
    from gradlint.report.explain import add_catalogue, rule_dict
    from gradlint.report.render import stream_options
    from gradlint.report.text import Page
    from gradlint.rules.catalogue import CATALOGUE

    if output_format == "json":
        sys.stdout.write(json.dumps([rule_dict(rule) for rule in CATALOGUE], indent=2) + "\n")
        return
    options = stream_options(sys.stdout)
    page = Page(options["width"], ascii=options["ascii"])
    add_catalogue(page, CATALOGUE)
    sys.stdout.write(page.text(color=options["color"]))
