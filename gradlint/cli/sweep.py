"""``gradlint sweep``: error of the numeric derivative against the step size."""

from __future__ import annotations

import sys
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
    Texts,
    Untrusted,
    one_of,
    option,
)
from gradlint.rules.catalogue import rule_names


def sweep(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help=TARGET,
            show_default=False,
        ),
    ],
    inputs: Inputs = None,
    sample: Annotated[
        str | None,
        option("--sample", metavar="LABEL", help="Which sample to sweep. Default: the first."),
    ] = None,
    dtype: Annotated[
        Texts,
        option("--dtype", metavar="LIST", help="float64,float32,bfloat16,float16; one sweep each."),
    ] = None,
    device: Device = None,
    steps: Annotated[
        int | None,
        option(
            "--steps", min=3, max=500, metavar="N", help="Number of steps. Default: by dtype, 23."
        ),
    ] = None,
    seed: Seed = None,
    timeout: Annotated[
        float | None,
        option("--timeout", metavar="S", help="Time limit for one operator. Default: 60 seconds."),
    ] = None,
    untrusted: Untrusted = None,
    imports: Imports = None,
    output_format: Annotated[
        str, option("--output-format", metavar="FORMAT", help="full (default) or json.")
    ] = "full",
    output: Output = None,
    plot: Annotated[
        str | None,
        option("--plot", metavar="FILE", help="Draw the plots into FILE: .png, .svg or .pdf."),
    ] = None,
    color: Color = "auto",
    debug: Debug = False,
) -> int:
    """Show how the error of the numeric derivative depends on the step size.

    A table and a plot for every differentiable input: where the gradient is right, the error
    falls until roundoff takes over; where it is wrong, it stops falling.

    Exits with 0 if the gradients agree, 1 if one differs or the operator crashed, 2 on wrong
    usage, 3 on an internal error, 5 if there was nothing to sweep, 130 if interrupted.
    """
    from gradlint.report.plot import check_plot, save_plot
    from gradlint.report.sweep import SWEEP_FORMATS, render_sweep

    one_of(output_format, SWEEP_FORMATS, "--output-format")
    _console.check_writable(output or "-", "-o")
    if plot is not None:
        check_plot(plot)
        _console.check_writable(plot, "--plot")
        _console.check_distinct([("-o", output or "-"), ("--plot", plot)])
    from gradlint.model.resolve import resolve_settings
    from gradlint.sweeping import sweep_target

    settings = resolve_settings(
        {
            "inputs": inputs,
            "dtype": dtype,
            "device": device,
            "seed": seed,
            "timeout": timeout,
            "untrusted": untrusted,
            "import": imports,
            "debug": debug or None,
        },
        rules=rule_names(),
        warn=_console.print_warning,
    )
    with _console.worker(debug=debug):
        report = sweep_target(target, settings, steps=steps, sample=sample)

    def write() -> None:
        if output:
            _console.write_file(output, render_sweep(report, output_format, width=100))
            return
        options = _console.stream_options(sys.stdout, color)
        text = render_sweep(report, output_format, **options)
        _console.write(text, colored=options["color"])

    def draw() -> None:
        if plot is not None and any(item.steps for item in report.inputs):
            save_plot(report, plot)

    unwritten = _console.failures([write, draw])
    for error in unwritten:
        _console.print_error(error)
    return GradlintError.exit_code if unwritten else report.exit_code
