"""``gradlint baseline``: accept the findings of today, and forget those that are gone."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gradlint.base.errors import GradlintError
from gradlint.cli import console as _console
from gradlint.cli.options import (
    TARGET,
    Debug,
    Device,
    Dtype,
    Ignore,
    Imports,
    Jobs,
    Order,
    Seed,
    Select,
    Texts,
    Timeout,
    Untrusted,
    targets_of,
)

baseline = typer.Typer(
    help="Accept the findings of today, so that only new ones fail a check.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
)

Path = Annotated[
    str | None,
    typer.Argument(
        metavar="[PATH]",
        help="The baseline, a .json file. Default: `baseline` of the settings, or "
        "gradlint-baseline.json.",
        show_default=False,
    ),
]
Targets = Annotated[
    Texts,
    typer.Argument(
        metavar="[TARGET]...",
        help=f"{TARGET} Default: `paths` of the settings.",
        show_default=False,
    ),
]


@baseline.command()
def write(
    path: Path = None,
    targets: Targets = None,
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
    debug: Debug = False,
) -> int:
    """Check, and write all findings that fail the run to the baseline.

    Entries whose check does not run stay, and so do reasons that were written into the file. Exits
    with 0 if the file is written, 5 if nothing was checked.
    """
    return _rewrite(path, targets, locals(), only_prune=False)


@baseline.command()
def prune(
    path: Path = None,
    targets: Targets = None,
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
    debug: Debug = False,
) -> int:
    """Check, and remove what no longer appears from the baseline, if its check ran.

    Exits with 0 if the file is right or was written, 5 if nothing was checked.
    """
    return _rewrite(path, targets, locals(), only_prune=True)


def _rewrite(path: str | None, targets: Texts, options: dict[str, Any], *, only_prune: bool) -> int:
    from gradlint.cli import progress as _progress
    from gradlint.gate.baseline import kept_for_writing, pruned, read, rewritten
    from gradlint.gate.gated import gated
    from gradlint.model.resolve import resolve_settings
    from gradlint.rules.catalogue import rule_names
    from gradlint.running.spool import Spool

    flags = {key: value for key, value in options.items() if key not in ("path", "targets")}
    flags = {**flags, "import": flags.pop("imports"), "debug": options["debug"] or None}
    settings = resolve_settings(flags, rules=rule_names(), warn=_console.print_warning)
    file = _file(path or settings.baseline)
    old = read(file) if only_prune else kept_for_writing(file)
    targets = targets_of(targets, settings, f"baseline {'prune' if only_prune else 'write'} {file}")
    _console.check_writable(file, "PATH")
    with _progress.watching() as watch:
        run = gated(
            targets,
            settings,
            on_progress=watch.done,
            on_tick=watch.tick,
            use_baseline=False,
            spool=Spool(),
        )
    for error in {str(error): error for error in run.usage}.values():
        _console.print_error(error)
    for text in run.internal:
        _console.print_internal(text.partition("\n")[0], debug=options["debug"])
    if run.exit_code not in (0, 1):
        return run.exit_code
    new = (pruned if only_prune else rewritten)(old, run.report, settings)
    _console.write_file(file, new.text())
    gone = len(set(old.entries) - set(new.entries))
    added = len(set(new.entries) - set(old.entries))
    _console.write(f"{file}: {len(new.entries)} in the baseline, {added} new, {gone} removed.\n")
    return 0


def _file(path: str | None) -> str:
    from gradlint.gate.baseline import DEFAULT

    file = path or DEFAULT
    if not file.endswith(".json"):
        raise GradlintError(
            f"{file!r} is not the name of a baseline, which ends with .json",
            place="PATH",
            hint=f"the first word is the file, the targets come after it: {DEFAULT} {file}",
        )
    return file
