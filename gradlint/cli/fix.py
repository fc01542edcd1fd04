"""``gradlint fix``: which change of the source mends what is found?"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

import typer

from gradlint.base.errors import GradlintError
from gradlint.base.terminal import clean
from gradlint.cli import console as _console
from gradlint.cli.options import (
    TARGET,
    BaselineFile,
    Debug,
    Device,
    Dtype,
    Ignore,
    Imports,
    Inputs,
    Jobs,
    Order,
    Seed,
    Texts,
    Timeout,
    Untrusted,
    option,
    targets_of,
)


def fix(
    targets: Annotated[Texts, typer.Argument(metavar="TARGET", help=TARGET)] = None,
    diff: Annotated[
        bool, option("--diff", help="Show the changes, and write nothing (the default).")
    ] = False,
    write: Annotated[
        bool, option("--write", help="Write the changes to the files, each whole or not at all.")
    ] = False,
    select: Annotated[
        Texts,
        option(
            "--select",
            metavar="CODES",
            help="Findings to fix: codes, prefixes or names; those of severity info too. Changes "
            "are verified by all rules. Default: all errors and warnings.",
        ),
    ] = None,
    inputs: Inputs = None,
    device: Device = None,
    dtype: Dtype = None,
    ignore: Ignore = None,
    order: Order = None,
    seed: Seed = None,
    timeout: Timeout = None,
    jobs: Jobs = None,
    untrusted: Untrusted = None,
    imports: Imports = None,
    baseline: BaselineFile = None,
    debug: Debug = False,
) -> int:
    """Show changes of the source that mend what is found, verified by all rules.

    Each candidate runs in isolated workers, which read the file as if it were changed; only one
    with which every check passes is shown. Exits with 0 if nothing is left to fix, 1 if something
    is (also what was shown and not written), 2 on wrong usage, 5 if nothing was checked.
    """
    from gradlint.repair.installed import check_installed

    check_installed("fix")
    from gradlint.cli import progress as _progress
    from gradlint.gate.gated import gated
    from gradlint.model.resolve import resolve_settings
    from gradlint.repair.mend import fixes
    from gradlint.repair.writing import write_all
    from gradlint.report.fixes import FixEntry, add_fixes
    from gradlint.rules.catalogue import rule_names
    from gradlint.running.spool import Spool

    if diff and write:
        raise GradlintError("--diff and --write exclude each other", place="fix")
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
            "baseline": baseline,
            "debug": debug or None,
        },
        rules=rule_names(),
        warn=_console.print_warning,
    )
    codes, every = settings.select, replace(settings, select=None)
    with _progress.watching(quiet=False) as watch:
        run = gated(
            targets_of(targets, settings, "fix"),
            every,
            on_progress=watch.done,
            on_tick=watch.tick,
            warn=_console.print_warning,
            spool=Spool(),
        )
    _console.print_errors_of(run, debug=debug)
    if run.exit_code not in (0, 1):
        return run.exit_code
    found = fixes(run.report, every, codes, begin=telling())
    written, failures = write_all(found, every) if write else ([], [])
    entries = [
        FixEntry(one.target, one.findings, one.fix, one.why, one in written) for one in found
    ]
    _console.write_page(lambda page, _: add_fixes(page, entries, asks=write))
    for error in failures:
        _console.print_error(error)
    if failures:
        return GradlintError.exit_code
    return int(any(not one.written for one in entries))


def telling(*, quiet: bool = False) -> Callable[[str], None] | None:
    """Says on a terminal which operator a change is searched for."""
    if quiet or not sys.stderr.isatty():
        return None
    return lambda target: _console.write(
        f"searching for a change of {clean(target)} …\n", sys.stderr
    )
