"""``gradlint env``: versions, devices, compilers and extras, and what can run here."""

from __future__ import annotations

from gradlint.cli import console as _console
from gradlint.cli.options import TextOrJson


def env(
    output_format: TextOrJson = "text",
) -> None:
    """Show versions, devices, compilers and extras, and what can run here."""
    from gradlint.environment import environment
    from gradlint.report.environment_page import add_environment

    facts = environment()
    if output_format == "json":
        _console.write_json(facts)
    else:
        _console.write_page(lambda page, _: add_environment(page, facts))
