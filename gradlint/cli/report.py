"""``gradlint report``: the reports of shards as one, in any format."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, cast, get_args

import typer

from gradlint.base.errors import GradlintError
from gradlint.cli import console as _console
from gradlint.cli.options import Color, Debug, Texts, one_of, option
from gradlint.cli.outputs import Outputs
from gradlint.model.report import FailOn, Report
from gradlint.model.sweep import SweepReport

#: Bytes of the files from which on what they hold is not held in memory, which would take as much
#: again. Heuristic: 4,500 operators; rendering them from a file takes twice the time.
LARGE_BYTES = 100_000_000


def report(
    files: Annotated[
        Texts,
        typer.Argument(
            metavar="FILE",
            help="Reports of `gradlint check` as json or jsonl; sweeps as json, for html.",
            show_default=False,
        ),
    ] = None,
    fail_on: Annotated[
        str | None,
        option(
            "--fail-on",
            metavar="LEVEL",
            help="error, warning, info, inconclusive or uncovered. Default: that of the run.",
        ),
    ] = None,
    output_format: Annotated[
        str,
        option(
            "--output-format",
            metavar="FORMAT",
            help="full (default), concise, json, jsonl, junit, sarif, github, gitlab, markdown or "
            "html.",
        ),
    ] = "full",
    output: Annotated[
        str | None, option("-o", "--output", metavar="FILE", help="Write the report to FILE.")
    ] = None,
    extra: Annotated[
        Texts,
        option("--report", metavar="FORMAT=PATH", help="Write another report (repeatable)."),
    ] = None,
    color: Color = "auto",
    verbose: Annotated[
        int, option("-v", "--verbose", count=True, help="Show everything that is known.")
    ] = 0,
    quiet: Annotated[
        bool, option("-q", "--quiet", help="One line per finding; no output if there are none.")
    ] = False,
    debug: Debug = False,
) -> int:
    """Merge the reports of shards, and render them in any format.

    Nothing is run. Exits as the whole run would have: 0 if the gradients are right, 1 on findings,
    2 if the files are not of one run or can't be read, 5 if nothing was checked.
    """
    if not files:
        raise GradlintError(
            "no file given",
            place="report",
            hint="name what `gradlint check … --report json=FILE` wrote; --help shows more",
        )
    from gradlint.report.merge import merge_reports
    from gradlint.report.read import read_report
    from gradlint.running.spool import Spool

    if fail_on is not None:
        one_of(fail_on, get_args(FailOn), "--fail-on")
    outputs = Outputs.asked_for(
        output_format, output, extra or [], color=color, verbose=verbose, quiet=quiet
    )
    gather = Spool().gathered if _are_large(files) else list
    read = [(file, read_report(file, gather)) for file in files]
    checks = [(file, found) for file, found in read if isinstance(found, Report)]
    sweeps = [found for _, found in read if isinstance(found, SweepReport)]
    if not checks:
        raise GradlintError(
            "only sweeps are given",
            place="report",
            hint="name a report of `gradlint check`, too: sweeps are shown beside it",
        )
    merged = merge_reports(checks, cast("FailOn | None", fail_on), gather)
    unwritten = outputs.write(merged, sweeps)
    for error in unwritten:
        _console.print_error(error)
    lost = unwritten and merged.exit_code in (0, 1, 5)
    return GradlintError.exit_code if lost else merged.exit_code


def _are_large(files: Sequence[str]) -> bool:
    found = 0
    for file in files:
        with suppress(OSError):  # which reading it tells
            found += os.path.getsize(file)
    return found >= LARGE_BYTES
