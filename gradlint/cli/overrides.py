"""``gradlint overrides``: which functions a class with ``__torch_function__`` handles, and how."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from gradlint.cli import console as _console
from gradlint.cli.options import Color, Debug, Imports, Output, Seed, Untrusted, one_of, option
from gradlint.rules.catalogue import rule_names


def overrides(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A class that defines __torch_function__: pkg.mod:Class or path/file.py:Class.",
            show_default=False,
        ),
    ],
    imports: Imports = None,
    seed: Seed = None,
    timeout: Annotated[
        float | None, option("--timeout", metavar="S", help="Time limit. Default: 60 seconds.")
    ] = None,
    untrusted: Untrusted = None,
    output_format: Annotated[
        str, option("--output-format", metavar="FORMAT", help="full (default), concise or json.")
    ] = "full",
    output: Output = None,
    color: Color = "auto",
    verbose: Annotated[
        int, option("-v", "--verbose", count=True, help="List all functions by name.")
    ] = 0,
    debug: Debug = False,
) -> int:
    """Audit a class that defines `__torch_function__`.

    Says which of torch's overridable functions the class handles, passes on or refuses, which
    handlers have a signature that differs from torch's, and which silently return the wrong type,
    shape or values. For that they are called on random instances, which come from a static method
    sample_inputs, or from the constructor.

    Exits with 0 if nothing is wrong, 1 on errors and warnings, 2 on wrong usage, 3 on an internal
    error, 130 if interrupted.
    """
    from gradlint.report.overrides import OVERRIDES_FORMATS, failing, render_overrides

    one_of(output_format, OVERRIDES_FORMATS, "--output-format")
    _console.check_writable(output or "-", "-o")
    from gradlint.model.resolve import resolve_settings
    from gradlint.running.call import audited

    settings = resolve_settings(
        {
            "import": imports,
            "seed": seed,
            "timeout": timeout,
            "untrusted": untrusted,
            "debug": debug or None,
        },
        rules=rule_names(),
        warn=_console.print_warning,
    )
    with _console.worker(debug=debug):
        audit = audited(target, settings)
    if output is not None and output != "-":
        text = render_overrides(audit, output_format, width=100, verbose=verbose)
        _console.write_file(output, text)
    else:
        options = _console.stream_options(sys.stdout, color)
        _console.write(
            render_overrides(audit, output_format, verbose=verbose, **options),
            colored=options["color"],
        )
    return 1 if failing(audit) else 0
