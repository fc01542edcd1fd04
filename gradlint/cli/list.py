"""``gradlint list``: what would be checked, and with which inputs? No rule runs."""

from __future__ import annotations

from typing import Annotated

import typer

from gradlint.cli import console as _console
from gradlint.cli.options import (
    TARGET,
    ChangedSince,
    Device,
    Dtype,
    Ignore,
    Imports,
    Inputs,
    Jobs,
    LastFailed,
    Order,
    Seed,
    Select,
    Shard,
    TextOrJson,
    Texts,
    Timeout,
    Untrusted,
    option,
    targets_of,
)


def list(
    targets: Annotated[Texts, typer.Argument(metavar="TARGET", help=TARGET)] = None,
    inputs: Inputs = None,
    device: Device = None,
    dtype: Dtype = None,
    select: Select = None,
    ignore: Ignore = None,
    order: Order = None,
    changed_since: ChangedSince = None,
    shard: Shard = None,
    last_failed: LastFailed = False,
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
    from gradlint.gate.choice import Choice
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
    choice = Choice(shard or "", changed_since, last_failed)
    leave_out = choice.leave_out(settings, _console.print_warning)
    run = listed(targets_of(targets, settings, "list"), settings, leave_out)
    run.report.shard = choice.shard
    made = entries(run.report, settings)
    if output_format == "json":
        _console.write_json(made)
    elif not run.empty:
        _console.write_page(lambda page, _: add_listing(page, made), verbose=verbose)
    for error in {str(error): error for error in run.usage}.values():
        _console.print_error(error)
    return exit_code(run)
