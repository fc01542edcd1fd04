"""``gradlint list``: what would be checked, and with which inputs? No rule runs."""

from __future__ import annotations

from typing import Annotated

import typer

from gradlint.base.errors import GradlintError
from gradlint.cli import console as _console
from gradlint.cli.options import (
    TARGET,
    Device,
    Dtype,
    Ignore,
    Imports,
    Inputs,
    Jobs,
    Order,
    Seed,
    Select,
    TextOrJson,
    Texts,
    Timeout,
    Untrusted,
    option,
)


def list(
    targets: Annotated[Texts, typer.Argument(metavar="TARGET", help=TARGET)] = None,
    inputs: Inputs = None,
    device: Device = None,
    dtype: Dtype = None,
    select: Select = None,
    ignore: Ignore = None,
    order: Order = None,
    seed: Seed = None,
    timeout: Timeout = None,
    jobs: Jobs = None,
    untrusted: Untrusted = None,
    imports: Imports = None,
    output_format: TextOrJson = "text",
    verbose: Annotated[
        int, option("-v", "--verbose", count=True, help="Name every rule and every sample.")
    ] = 0,
) -> int:
    """Show what a check would run, with which inputs, and why something is left out.

    Operators are loaded and their inputs are found, but no rule runs. Exits with 0 if every
    operator would run, 1 if one can't, 2 on wrong usage, 5 if there is none.
    """
    if not targets:
        raise GradlintError(
            "no target given",
            place="list",
            hint="name one, such as `gradlint list path/file.py`; --help shows all kinds",
        )
    from gradlint.gate.listing import entries, exit_code, listed
    from gradlint.model.resolve import resolve_settings
    from gradlint.report.listing import add_listing
    from gradlint.rules.catalogue import rule_names

    settings = resolve_settings(
        {
            "inputs": inputs,
            "device": device,
            "dtype": dtype,
            "select": select,
            "ignore": ignore,
            "order": order,
            "seed": seed,
            "timeout": timeout,
            "jobs": jobs,
            "untrusted": untrusted,
            "import": imports,
        },
        rules=rule_names(),
        warn=_console.print_warning,
    )
    run = listed(targets or [], settings)
    made = entries(run.report, settings)
    if output_format == "json":
        _console.write_json(made)
    elif not run.empty:
        _console.write_page(lambda page, _: add_listing(page, made), verbose=verbose)
    for error in {str(error): error for error in run.usage}.values():
        _console.print_error(error)
    return exit_code(run)
