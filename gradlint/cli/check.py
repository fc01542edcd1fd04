"""``gradlint check``: are the gradients of these operators right?"""

from __future__ import annotations

import importlib.util
import os
import sys
from functools import partial
from typing import Annotated

import typer

from gradlint.base.errors import GradlintError
from gradlint.cli import console as _console
from gradlint.cli.options import (
    TARGET,
    Color,
    Debug,
    Device,
    Imports,
    Inputs,
    Output,
    Seed,
    SkipOthers,
    Texts,
    Untrusted,
    one_of,
    option,
    with_operators,
)
from gradlint.model.report import Report
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
    device: Device = None,
    require_device: Annotated[
        bool | None,
        option(
            "--require-device",
            help="Exit with 2 if a device is absent, instead of skipping its checks.",
        ),
    ] = None,
    dtype: Annotated[
        Texts,
        option(
            "--dtype", metavar="LIST", help="float64,float32,bfloat16,float16. Default: float64."
        ),
    ] = None,
    select: Annotated[
        Texts,
        option(
            "--select",
            metavar="CODES",
            help="Rules to run: codes, prefixes or names. Default: all.",
        ),
    ] = None,
    ignore: Annotated[
        Texts, option("--ignore", metavar="CODES", help="Rules to leave out.")
    ] = None,
    order: Annotated[
        int | None,
        option(
            "--order",
            metavar="1|2",
            help="2 (default) checks second derivatives too.",
        ),
    ] = None,
    seed: Seed = None,
    timeout: Annotated[
        float | None,
        option(
            "--timeout",
            metavar="S",
            help="Time limit for loading, for inputs, and for each rule. Default: 60 seconds.",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        option("-j", "--jobs", metavar="N", help="Number of workers. Default: number of cores."),
    ] = None,
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
    output_format: Annotated[
        str, option("--output-format", metavar="FORMAT", help="full (default), concise or json.")
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
    if not targets:
        raise GradlintError(
            "no target given",
            place="check",
            hint="name one, such as `gradlint check path/file.py:Name`; --help shows all kinds",
        )
    if skip_others:
        targets = with_operators(targets)
        if not targets:
            return 0
    from gradlint.cli import progress as _progress
    from gradlint.model.resolve import resolve_settings
    from gradlint.running.run import execute

    if triton_interpret:
        _interpret_triton()
    outputs = _outputs(output_format, output, report or [], quiet=quiet)
    settings = resolve_settings(
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
            "debug": debug or None,
        },
        rules=rule_names(),
        warn=_console.print_warning,
    )
    with _progress.bar(quiet=quiet) as on_progress:
        run = execute(targets, settings, on_progress=on_progress)
    if run.empty:
        outputs = [(format, path) for format, path in outputs if format == "json" or path != "-"]
    unwritten = _write_all(run.report, outputs, color=color, verbose=verbose, quiet=quiet)
    _tell(run, debug=debug)
    for error in unwritten:
        _console.print_error(error)
    lost = unwritten and run.exit_code in (0, 1, 5)
    return GradlintError.exit_code if lost else run.exit_code


def _interpret_triton() -> None:
    """Make Triton interpret its kernels, in workers too."""
    if importlib.util.find_spec("triton") is None:
        raise GradlintError(
            "triton is not installed",
            place="--triton-interpret",
            hint="run `pip install triton`; `gradlint env` says whether it works",
        )
    os.environ["TRITON_INTERPRET"] = "1"


def _outputs(
    format: str, path: str | None, extra: list[str], *, quiet: bool
) -> list[tuple[str, str]]:
    """Formats and paths to write, checked before anything runs."""
    from gradlint.report.render import FORMATS

    wanted = [("concise" if quiet and format == "full" else format, path or "-", "--output-format")]
    for text in extra:
        name, mark, file = text.partition("=")
        if not mark or not file:
            raise GradlintError(
                f"expected FORMAT=PATH, got {text!r}",
                place="--report",
                hint="for example --report json=gradlint.json",
            )
        wanted.append((name, file, "--report"))
    for name, file, flag in wanted:
        one_of(name, FORMATS, flag)
        _console.check_writable(file, _path_option(flag))
    _console.check_distinct((_path_option(flag), file) for _, file, flag in wanted)
    return [(name, file) for name, file, _ in wanted]


def _path_option(flag: str) -> str:
    """The option that names the file whose format ``flag`` names."""
    return "-o" if flag == "--output-format" else flag


def _write_all(
    report: Report, outputs: list[tuple[str, str]], *, color: str, verbose: int, quiet: bool
) -> list[GradlintError]:
    """Write every report; what went wrong with those that could not be written."""
    return _console.failures(
        partial(_write, report, format, path, color=color, verbose=verbose, quiet=quiet)
        for format, path in outputs
    )


def _write(
    report: Report, format: str, path: str, *, color: str, verbose: int, quiet: bool
) -> None:
    from gradlint.report.render import render_parts

    if path != "-":
        _console.write_file(path, render_parts(report, format, width=100, verbose=verbose))
    elif not (quiet and report.ok):
        options = _console.stream_options(sys.stdout, color)
        parts = render_parts(report, format, verbose=verbose, **options)
        _console.write_parts(parts, colored=options["color"])


def _tell(run: Run, *, debug: bool) -> None:
    for error in {str(error): error for error in run.usage}.values():
        _console.print_error(error)
    for text in run.internal:
        what, _, traceback = text.partition("\n")
        if debug:
            _console.write(traceback + "\n", sys.stderr)
        _console.print_internal(what, debug=debug)
