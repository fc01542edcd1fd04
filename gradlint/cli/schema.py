"""``gradlint schema``: JSON Schemas for editors and other tools."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from gradlint.base.errors import GradlintError
from gradlint.base.text import did_you_mean
from gradlint.cli import console as _console

#: Kind of document → what it describes.
KINDS = {
    "spec": "a YAML op spec",
    "report": "the JSON report of `gradlint check`",
    "settings": "[tool.gradlint] in pyproject.toml",
}


def schema(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND", help="spec (YAML op specs), report (the JSON report) or settings."
        ),
    ],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="Write to FILE.")
    ] = "-",
) -> None:
    """Print the JSON Schema (2020-12) of specs, reports or settings.

    Editors find it by the line `# yaml-language-server: $schema=FILE` at the top of a spec.
    """
    if kind not in KINDS:
        raise GradlintError(
            f"there is no schema of {kind!r}",
            place="schema",
            hint=did_you_mean(kind, KINDS, f"choose from {', '.join(KINDS)}"),
        )
    _console.check_writable(output, "-o")
    _console.write_file(output, _schema(kind))


def _schema(kind: str) -> str:
    if kind == "report":
        from gradlint.report.schema import json_schema as report_schema

        return json.dumps(report_schema(), indent=2) + "\n"
    if kind == "settings":
        from gradlint.model.resolve import json_schema as settings_schema

        return json.dumps(settings_schema(), indent=2) + "\n"
    from gradlint.spec.schema import json_schema

    return json.dumps(json_schema(), indent=2) + "\n"
