"""``gradlint init``: a first spec of an operator, with inferred inputs."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from gradlint.base.errors import GradlintError
from gradlint.cli import console as _console
from gradlint.cli.options import Debug, Texts, Untrusted, option
from gradlint.rules.catalogue import rule_names


def init(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="One operator: pkg.mod:Name, path/file.py:Name, torch.ops.ns.name.",
        ),
    ],
    output: Annotated[
        str | None,
        option(
            "-o",
            "--output",
            metavar="FILE",
            help="Where to write. Default: the operator's name + .yaml.",
        ),
    ] = None,
    force: Annotated[bool, option("--force", help="Overwrite the file.")] = False,
    inputs: Annotated[
        str | None,
        option("--inputs", metavar="SOURCE", help="As for gradlint check. Default: inferred."),
    ] = None,
    imports: Annotated[
        Texts, option("--import", metavar="MODULE", help="Import this first (repeatable).")
    ] = None,
    timeout: Annotated[
        float | None,
        option("--timeout", metavar="S", help="Time limit for finding inputs, in seconds."),
    ] = None,
    untrusted: Untrusted = None,
    debug: Debug = False,
) -> None:
    """Write a starter spec of an operator, with the inputs that were found for it.

    `gradlint check FILE` then checks the same as `gradlint check TARGET`.
    """
    if target.lower().endswith((".yaml", ".yml")):
        raise GradlintError(
            f"`{target}` is already a spec", place="init", hint="name the operator it describes"
        )
    path = output or _default(target)
    if path != "-" and not force and os.path.exists(path):
        raise GradlintError(
            "already exists", place=path, hint="--force overwrites it, -o FILE writes elsewhere"
        )
    _console.check_writable(path, "-o", replacing=(".yaml", ".yml"))
    from gradlint.model.resolve import resolve_settings
    from gradlint.running.call import starter

    settings = resolve_settings(
        {
            "inputs": inputs,
            "import": imports,
            "timeout": timeout,
            "untrusted": untrusted,
            "debug": debug or None,
        },
        rules=rule_names(),
        warn=_console.print_warning,
    )
    folder = "." if path == "-" else os.path.dirname(path) or "."
    with _console.worker(debug=debug):
        text = starter(target, settings, folder)
    _console.write_file(path, text)
    if path != "-":
        _console.write(f"wrote {path}; next: gradlint check {path}\n", sys.stderr)


def _default(target: str) -> str:
    name = target.replace("::", ":").rsplit(":", 1)[-1].rsplit(".", 1)[-1]
    if target.endswith(".py"):
        name = os.path.splitext(os.path.basename(target))[0]
    kept = "".join(c if c.isalnum() or c in "_-" else "_" for c in name)
    return f"{kept or 'op'}.yaml"
