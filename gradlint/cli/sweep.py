"""``gradlint sweep``: error of the numeric derivative against the step size."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from gradlint.cli import _console
from gradlint.cli._options import one_of

_Texts = list[str] | None


def _option(*names: str, help: str, metavar: str | None = None, **more: Any) -> Any:
    return typer.Option(*names, help=help, metavar=metavar, show_default=False, **more)


def sweep(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="pkg.mod:Name, path/file.py:Name, a module, file or folder, a YAML spec, "
            "or torch.ops.ns.name.",
            show_default=False,
        ),
    ],
    inputs: Annotated[
        str | None,
        _option(
            "--inputs",
            metavar="SOURCE",
            help="path/file.py:function, pkg.mod:function, or an expression such as "
            '"randn(3, 4), None, dim=-1". Default: sample_inputs, the spec, or inferred.',
        ),
    ] = None,
    sample: Annotated[
        str | None,
        _option("--sample", metavar="LABEL", help="Which sample, where there are several."),
    ] = None,
    dtype: Annotated[
        _Texts,
        _option("--dtype", metavar="LIST", help="float64,float32,bfloat16,float16: a sweep each."),
    ] = None,
    device: Annotated[
        _Texts, _option("--device", metavar="LIST", help="cpu,cuda. Default: cpu.")
    ] = None,
    steps: Annotated[
        int | None,
        _option(
            "--steps", min=3, max=500, metavar="N", help="Number of steps. Default: by dtype, 23."
        ),
    ] = None,
    seed: Annotated[
        int | None, _option("--seed", metavar="N", help="Default: a fresh one, printed.")
    ] = None,
    timeout: Annotated[
        float | None,
        _option("--timeout", metavar="S", help="Seconds for one operator. Default: 60."),
    ] = None,
    imports: Annotated[
        _Texts,
        _option("--import", metavar="MODULE", help="Import this before the target (repeatable)."),
    ] = None,
    output_format: Annotated[
        str, _option("--output-format", metavar="FORMAT", help="full (default) or json.")
    ] = "full",
    output: Annotated[
        str | None, _option("-o", "--output", metavar="FILE", help="Write the report to FILE.")
    ] = None,
    plot: Annotated[
        str | None,
        _option("--plot", metavar="FILE", help="Draw into FILE: .png, .svg or .pdf."),
    ] = None,
    color: Annotated[
        str, _option("--color", metavar="WHEN", help="auto (default), always or never.")
    ] = "auto",
    debug: Annotated[bool, _option("--debug", help="Tracebacks of gradlint itself.")] = False,
) -> int:
    """Show how the error of the numeric derivative depends on the step size.

    A table and a plot for every differentiable input: where the gradient is right, the error
    falls until roundoff takes over; where it is wrong, it stops falling.

    Exits with 0 if the gradients agree, 1 if one differs or the operator crashed, 2 on wrong
    usage, 3 on a fault of gradlint's own, 5 if there was nothing to sweep, 130 if interrupted.
    """
    from gradlint.report._plot import check_plot, save_plot
    from gradlint.report._sweep import SWEEP_FORMATS, render_sweep

    one_of(color, ("auto", "always", "never"), "--color")
    one_of(output_format, SWEEP_FORMATS, "--output-format")
    _console.check_writable(output or "-", "-o")
    if plot is not None:
        check_plot(plot)
        _console.check_writable(plot, "--plot")
    from gradlint import running
    from gradlint._sweep import sweep_target
    from gradlint.cli import _progress
    from gradlint.config import resolve_settings

    settings = resolve_settings(
        {
            "inputs": inputs,
            "dtype": dtype,
            "device": device,
            "seed": seed,
            "timeout": timeout,
            "import": imports,
            "debug": debug or None,
        }
    )
    try:
        with _progress.terminated():
            report = sweep_target(target, settings, steps=steps, sample=sample)
    except running.WorkerFailed as failed:
        if debug and failed.internal:
            _console.write(failed.internal + "\n", sys.stderr)
        raise
    finally:
        running.stop()
    if output:
        _console.write_file(output, render_sweep(report, output_format, width=100))
    else:
        options = _console.stream_options(sys.stdout, color)
        _console.write(render_sweep(report, output_format, **options))
    if plot is not None and any(item.steps for item in report.inputs):
        save_plot(report, plot)
    return report.exit_code
