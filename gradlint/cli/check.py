"""``gradlint check``: are the gradients of these operators right?"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradlint._errors import GradlintError
from gradlint.cli import _console
from gradlint.cli._options import one_of

if TYPE_CHECKING:
    from gradlint.report import Report
    from gradlint.running import Run

_Texts = list[str] | None


def _option(*names: str, help: str, metavar: str | None = None, **more: Any) -> Any:
    return typer.Option(*names, help=help, metavar=metavar, show_default=False, **more)


def check(
    targets: Annotated[
        _Texts,
        typer.Argument(
            metavar="TARGET",
            help="pkg.mod:Name, path/file.py:Name, a module, file or folder, a YAML spec, "
            "or torch.ops.ns.name.",
            show_default=False,
        ),
    ] = None,
    inputs: Annotated[
        str | None,
        _option(
            "--inputs",
            metavar="SOURCE",
            help="path/file.py:function, pkg.mod:function, or an expression such as "
            '"randn(3, 4), None, dim=-1". Default: sample_inputs, the spec, or inferred.',
        ),
    ] = None,
    device: Annotated[
        _Texts, _option("--device", metavar="LIST", help="cpu,cuda. Default: cpu.")
    ] = None,
    require_device: Annotated[
        bool | None,
        _option("--require-device", help="Exit 2 if a device is absent, instead of skipping."),
    ] = None,
    dtype: Annotated[
        _Texts,
        _option("--dtype", metavar="LIST", help="float64,float32,bfloat16,float16."),
    ] = None,
    select: Annotated[
        _Texts,
        _option("--select", metavar="CODES", help="Only these rules: codes, prefixes or names."),
    ] = None,
    ignore: Annotated[_Texts, _option("--ignore", metavar="CODES", help="Not these rules.")] = None,
    order: Annotated[
        int | None,
        _option(
            "--order",
            metavar="1|2",
            help="2 (default) checks second derivatives too.",
        ),
    ] = None,
    seed: Annotated[
        int | None, _option("--seed", metavar="N", help="Default: a fresh one, printed.")
    ] = None,
    timeout: Annotated[
        float | None,
        _option(
            "--timeout", metavar="S", help="Seconds for loading, inputs, or one rule. Default: 60."
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        _option("-j", "--jobs", metavar="N", help="Workers at a time. Default: number of cores."),
    ] = None,
    memory: Annotated[
        int | None,
        _option("--memory", min=1, metavar="MIB", help="Memory one operator may allocate."),
    ] = None,
    imports: Annotated[
        _Texts,
        _option("--import", metavar="MODULE", help="Import this before the targets (repeatable)."),
    ] = None,
    fail_on: Annotated[
        str | None,
        _option(
            "--fail-on", metavar="LEVEL", help="error, warning (default), info or inconclusive."
        ),
    ] = None,
    output_format: Annotated[
        str, _option("--output-format", metavar="FORMAT", help="full (default), concise or json.")
    ] = "full",
    output: Annotated[
        str | None, _option("-o", "--output", metavar="FILE", help="Write the report to FILE.")
    ] = None,
    report: Annotated[
        _Texts,
        _option("--report", metavar="FORMAT=PATH", help="Write another report (repeatable)."),
    ] = None,
    color: Annotated[
        str, _option("--color", metavar="WHEN", help="auto (default), always or never.")
    ] = "auto",
    verbose: Annotated[
        int,
        _option(
            "-v", "--verbose", count=True, help="Show the anatomy of every target, and all checks."
        ),
    ] = 0,
    quiet: Annotated[
        bool, _option("-q", "--quiet", help="One line a finding; nothing when all is well.")
    ] = False,
    debug: Annotated[bool, _option("--debug", help="Tracebacks of gradlint itself.")] = False,
) -> int:
    """Check whether the gradients of operators are right.

    Exits with 0 if they are, 1 on findings, 2 on wrong usage, 3 on a fault of gradlint's own,
    5 if nothing was checked, 130 if interrupted.
    """
    if not targets:
        raise GradlintError(
            "no target given",
            place="check",
            hint="name one, such as `gradlint check path/file.py:Name`; --help shows all kinds",
        )
    from gradlint import running
    from gradlint.cli import _progress
    from gradlint.config import resolve_settings

    one_of(color, ("auto", "always", "never"), "--color")
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
            "import": imports,
            "fail_on": fail_on,
            "debug": debug or None,
        }
    )
    with _progress.terminated() as signals, _progress.bar(quiet=quiet) as on_progress:
        run = running.execute(targets, settings, on_progress=on_progress)
    if run.empty:
        outputs = [(format, path) for format, path in outputs if format == "json" or path != "-"]
    for format, path in outputs:
        _write(run.report, format, path, color=color, verbose=verbose, quiet=quiet)
    _tell(run, debug=debug)
    return 143 if run.report.interrupted and signals.terminated else run.exit_code


def _outputs(
    format: str, path: str | None, extra: list[str], *, quiet: bool
) -> list[tuple[str, str]]:
    """Formats and paths to write, checked before anything runs."""
    from gradlint.report import FORMATS

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
    for name, file, option in wanted:
        one_of(name, FORMATS, option)
        _console.check_writable(file, "-o" if option == "--output-format" else option)
    return [(name, file) for name, file, _ in wanted]


def _write(
    report: Report, format: str, path: str, *, color: str, verbose: int, quiet: bool
) -> None:
    from gradlint.report import render

    if path != "-":
        _console.write_file(path, render(report, format, width=100, verbose=verbose))
    elif not (quiet and report.ok):
        options = _console.stream_options(sys.stdout, color)
        _console.write(render(report, format, verbose=verbose, **options))


def _tell(run: Run, *, debug: bool) -> None:
    for error in {str(error): error for error in run.usage}.values():
        _console.print_error(error)
    for text in run.internal:
        what, _, traceback = text.partition("\n")
        if debug:
            _console.write(traceback + "\n", sys.stderr)
        _console.print_internal(what, debug=debug)
