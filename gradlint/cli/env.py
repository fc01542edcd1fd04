"""``gradlint env``: versions, devices, compilers and extras, and what can run here."""

from __future__ import annotations

import json
import sys

from gradlint.cli.options import TextOrJson


def env(
    output_format: TextOrJson = "text",
) -> None:
    """Show versions, devices, compilers and extras, and what can run here."""
    from gradlint.environment import environment
    from gradlint.report.environment_page import add_environment
    from gradlint.report.render import stream_options
    from gradlint.report.text import Page

    facts = environment()
    if output_format == "json":
        sys.stdout.write(json.dumps(facts, indent=2) + "\n")
        return
    options = stream_options(sys.stdout)
    page = Page(options["width"], ascii=options["ascii"])
    add_environment(page, facts)
    sys.stdout.write(page.text(color=options["color"]))
