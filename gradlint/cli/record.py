"""``gradlint record``: learn inputs from the user's own program."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from gradlint.base.errors import GradlintError
from gradlint.cli import console as _console
from gradlint.cli.options import Debug, Imports, Jobs, Seed, Texts, Timeout, option
from gradlint.rules.catalogue import rule_names

#: Where specs are written unless -o says otherwise.
FOLDER = "gradlint-recorded"


def record(
    command: Annotated[
        Texts,
        typer.Argument(
            metavar="-- COMMAND",
            help="The program: python train.py, pytest tests, python -m pkg.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        str,
        option("-o", "--output", metavar="DIR", help=f"Where to write specs. Default: {FOLDER}."),
    ] = FOLDER,
    of: Annotated[
        Texts,
        option(
            "--of",
            metavar="NAME",
            help="Record this module or function too: pkg.mod:Name or path/file.py:Name "
            "(repeatable).",
        ),
    ] = None,
    force: Annotated[
        bool, option("--force", help="Overwrite specs that were not recorded, too.")
    ] = False,
    imports: Imports = None,
    seed: Seed = None,
    timeout: Timeout = None,
    jobs: Jobs = None,
    debug: Debug = False,
) -> int:
    """Run a program, watch which operators it calls, and write a spec for each of them.

    The program runs as it would without gradlint: its output and its exit code are its own.
    `gradlint check DIR` then checks the operators on inputs like those that the program gave them.
    """
    if not command:
        raise GradlintError(
            "no program is given",
            place="record",
            hint="write it after two dashes: gradlint record -- python train.py",
        )
    from gradlint.cli.recorded import summary
    from gradlint.model.resolve import resolve_settings
    from gradlint.recording import record as run

    settings = resolve_settings(
        {
            "import": imports,
            "seed": seed,
            "timeout": timeout,
            "jobs": jobs,
            "debug": debug or None,
        },
        rules=rule_names(),
        warn=_console.print_warning,
    )
    with _console.worker(debug=debug):
        found = run(command, output, settings, names=of or (), force=force)
    _console.write(summary(found, output), sys.stderr)
    if found.paths:
        _console.write(f"gradlint: next: gradlint check {output}\n", sys.stderr)
    if found.exit_code:
        return found.exit_code
    return 0 if found.paths else 5
