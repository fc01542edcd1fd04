"""``gradlint rules``: the catalogue."""

from __future__ import annotations

from gradlint.cli import console as _console
from gradlint.cli.options import TextOrJson


def rules(
    output_format: TextOrJson = "text",
) -> None:
    """List all rules: code, name, severity, order of derivative, and what each finds."""
    from gradlint.report.explain import add_catalogue, rule_dict
    from gradlint.rules.catalogue import CATALOGUE

    if output_format == "json":
        _console.write_json([rule_dict(rule) for rule in CATALOGUE])
    else:
        _console.write_page(lambda page, _: add_catalogue(page, CATALOGUE))
