"""``gradlint check``: are the gradients of these operators right?"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from typing import Annotated

import typer

from gradlint.base.errors import GradlintError
from gradlint.base.terminal import clean
from gradlint.base.text import short_text
from gradlint.cli import console as _console
from gradlint.cli.options import (
    TARGET,
    BaselineFile,
    Cache,
    ChangedSince,
    Cluster,
    Color,
    Debug,
    Device,
    Dtype,
    Ignore,
    Imports,
    Inputs,
    Jobs,
    LastFailed,
    NoCache,
    Order,
    Output,
    Seed,
    Select,
    Shard,
    SkipOthers,
    Texts,
    Timeout,
    Untrusted,
    option,
    targets_of,
    with_operators,
)
from gradlint.cli.outputs import Outputs
from gradlint.model.report import Report
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import rule_names
from gradlint.running.run import Run


def check(
    targets: Annotated[
        Texts,
        typer.Argument(
            metavar="TARGET",
            help=TARGET,
            show_default=False,
        ),
    ] = None,
    inputs: Inputs = None,
    from_: Annotated[
        str | None,
        option(
            "--from",
            metavar="COMMAND",
            help="Run this program first, as gradlint record does, and check the operators that it "
            'calls on inputs like those that it gave them: --from "pytest tests".',
        ),
    ] = None,
    device: Device = None,
    require_device: Annotated[
        bool | None,
        option(
            "--require-device",
            help="Exit with 2 if a device is absent, instead of skipping its checks.",
        ),
    ] = None,
    dtype: Dtype = None,
    select: Select = None,
    ignore: Ignore = None,
    order: Order = None,
    seed: Seed = None,
    timeout: Timeout = None,
    jobs: Jobs = None,
    memory: Annotated[
        int | None,
        option("--memory", min=1, metavar="MIB", help="Memory that one operator may allocate."),
    ] = None,
    max_calls: Annotated[
        int | None,
        option(
            "--max-calls",
            min=1,
            metavar="N",
            help="Limit of forward and backward calls per sample. Default: none.",
        ),
    ] = None,
    sanitizer: Annotated[
        str | None,
        option(
            "--sanitizer",
            metavar="TOOL",
            help="Run under compute-sanitizer: memcheck, racecheck, initcheck or synccheck.",
        ),
    ] = None,
    untrusted: Untrusted = None,
    imports: Imports = None,
    triton_interpret: Annotated[
        bool,
        option(
            "--triton-interpret", help="Run Triton kernels on the CPU, in Triton's interpreter."
        ),
    ] = False,
    skip_others: SkipOthers = False,
    fail_on: Annotated[
        str | None,
        option(
            "--fail-on",
            metavar="LEVEL",
            help="error, warning (default), info, inconclusive, or uncovered: that an operator "
            "passes with code that never ran fails the run, too.",
        ),
    ] = None,
    baseline: BaselineFile = None,
    require_coverage: Annotated[
        Texts,
        option(
            "--require-coverage",
            metavar="PATH",
            help="Fail if an operator under PATH is checked by nothing (repeatable).",
        ),
    ] = None,
    changed_since: ChangedSince = None,
    shard: Shard = None,
    last_failed: LastFailed = False,
    cache: Cache = None,
    no_cache: NoCache = False,
    cluster: Cluster = None,
    max_failures: Annotated[
        int | None,
        option(
            "--max-failures", min=1, metavar="N", help="End after N operators that fail the run."
        ),
    ] = None,
    first_failure: Annotated[
        bool, option("-x", "--exitfirst", help="End after the first one: --max-failures 1.")
    ] = False,
    repro: Annotated[
        str | None,
        option(
            "--repro",
            metavar="DIR",
            help="Write a script for each finding into DIR, which shows it with PyTorch alone.",
        ),
    ] = None,
    show_settings: Annotated[
        bool,
        option("--show-settings", help="Show every setting and where it comes from; run nothing."),
    ] = False,
    statistics: Annotated[
        bool, option("--statistics", help="Count the findings by rule, below the report.")
    ] = False,
    suggest: Annotated[
        bool,
        option(
            "--suggest",
            help="Search for a change of the source that mends the findings of each operator, and "
            "show it with them once it is verified.",
        ),
    ] = False,
    output_format: Annotated[
        str,
        option(
            "--output-format",
            metavar="FORMAT",
            help="full (default), concise, json, jsonl, junit, sarif, github, gitlab, markdown or "
            "html.",
        ),
    ] = "full",
    output: Output = None,
    report: Annotated[
        Texts,
        option("--report", metavar="FORMAT=PATH", help="Write another report (repeatable)."),
    ] = None,
    color: Color = "auto",
    verbose: Annotated[
        int,
        option(
            "-v",
            "--verbose",
            count=True,
            help="Show the anatomy and predicted cost of every target, and all checks.",
        ),
    ] = 0,
    quiet: Annotated[
        bool, option("-q", "--quiet", help="One line per finding; no output if there are none.")
    ] = False,
    debug: Debug = False,
) -> int:
    """Check whether the gradients of operators are right.

    Exits with 0 if they are, 1 on findings, 2 on wrong usage, 3 on an internal error, 5 if nothing
    was checked, 130 if interrupted (143 by SIGTERM or SIGHUP).
    """
    if skip_others and targets:
        targets = with_operators(targets)
        if not targets:
            return 0
    from gradlint.cli import progress as _progress
    from gradlint.gate.choice import Choice
    from gradlint.gate.gated import gated
    from gradlint.model.resolve import resolved_settings
    from gradlint.report.settings import settings_text
    from gradlint.running.spool import Spool

    if triton_interpret:
        _interpret_triton()
    outputs = Outputs.asked_for(
        output_format, output, report or [], color=color, verbose=verbose, quiet=quiet
    )
    settings, origins = resolved_settings(
        {
            "inputs": inputs,
            "device": device,
            "require_device": require_device,
            "dtype": dtype,
            "select": select,
            "ignore": ignore,
            "order": order,
            "seed": seed,
            "timeout": timeout,
            "jobs": jobs,
            "memory_mb": memory,
            "max_calls": max_calls,
            "sanitizer": sanitizer,
            "untrusted": untrusted,
            "import": imports,
            "fail_on": fail_on,
            "baseline": baseline,
            "require_coverage": require_coverage,
            "max_failures": 1 if first_failure else max_failures,
            "cache": "" if no_cache else cache,
            "cluster": cluster,
            "debug": debug or None,
        },
        rules=rule_names(),
        warn=_console.print_warning,
    )
    if show_settings:
        _console.write(settings_text(settings, origins))
        return 0
    if from_ is not None:
        targets = _recorded(from_, targets, settings)
        if not targets:
            return 5
    targets = targets_of(targets, settings, "check")
    _able_to(suggest=suggest)
    with _progress.watching(quiet=quiet) as watch:
        run = gated(
            targets,
            settings,
            on_progress=watch.done,
            on_tick=watch.tick,
            choice=Choice(shard or "", changed_since, last_failed),
            warn=_console.print_warning,
            spool=Spool(),
        )
        if repro is not None:
            _reproduce(run, settings, repro)
    if run.empty:
        outputs = outputs.without_people()
    if suggest:
        _suggest(run, settings, quiet=quiet)
    unwritten = outputs.write(run.report)
    if statistics and not run.empty:
        _count(run.report, outputs)
    _console.print_errors_of(run, debug=debug)
    for error in unwritten:
        _console.print_error(error)
    lost = unwritten and run.exit_code in (0, 1, 5)
    return GradlintError.exit_code if lost else run.exit_code


def _able_to(*, suggest: bool) -> None:
    """See before the run that what is asked for is installed."""
    if suggest:
        from gradlint.repair.installed import check_installed

        check_installed("--suggest")


def _recorded(command: str, targets: Texts, settings: Settings) -> list[str]:
    """The specs of the operators that a program calls."""
    if targets:
        raise GradlintError(
            "the program says what is checked",
            place="--from",
            hint=f"leave out {short_text(targets[0], 40)}, or --from",
        )
    from gradlint.cli.recorded import summary
    from gradlint.gate.choice import CACHE
    from gradlint.recording import record, words_of

    folder = os.path.join(CACHE, "recorded")
    shutil.rmtree(folder, ignore_errors=True)
    found = record(words_of(command, "--from"), folder, settings)
    _console.write(summary(found, folder), sys.stderr)
    return found.paths


def _suggest(run: Run, settings: Settings, *, quiet: bool) -> None:
    """Attach verified changes to the findings of ``run``, if it came to its end."""
    if run.report.interrupted:
        return
    from gradlint.cli.fix import telling
    from gradlint.repair.mend import fixes

    try:
        fixes(run.report, settings, begin=telling(quiet=quiet))
    except KeyboardInterrupt:
        run.report.interrupted = True


def _reproduce(run: Run, settings: Settings, folder: str) -> None:
    """Write scripts for the findings of a run that came to its end, and say on the error stream
    what came of each."""
    if run.report.interrupted:
        return
    from gradlint.reproducing import Written, write_scripts

    def tell(written: Written) -> None:
        if written.path:
            fewer = f", with {written.after} of {written.before} numbers left"
            less = fewer if written.after < written.before else ""
            line = f"script for {written.code} of {written.target}: {written.path}{less}"
        else:
            line = f"no script for {written.code} of {written.target}: {written.why}"
        _console.write(clean(line) + "\n", sys.stderr)

    write_scripts(run.report, settings, folder, tell)


def _interpret_triton() -> None:
    """Make Triton interpret its kernels, in workers too."""
    if importlib.util.find_spec("triton") is None:
        raise GradlintError(
            "triton is not installed",
            place="--triton-interpret",
            hint="run `pip install triton`; `gradlint env` says whether it works",
        )
    os.environ["TRITON_INTERPRET"] = "1"


def _count(report: Report, outputs: Outputs) -> None:
    """Write the counts to the standard output, or to the other stream if a report for programs is
    there."""
    from gradlint.report.render import PAGES
    from gradlint.report.statistics import statistics_text

    for_programs = [
        format for format, path in outputs.wanted if path == "-" and format not in PAGES
    ]
    _console.write(statistics_text(report), sys.stderr if for_programs else None)
