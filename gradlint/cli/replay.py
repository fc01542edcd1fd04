"""``gradlint replay``: make failed checks again."""

from __future__ import annotations

from typing import Annotated

import typer

from gradlint.base.terminal import clean
from gradlint.cli import console as _console
from gradlint.cli.options import Debug, Texts, option


def replay(
    ids: Annotated[
        Texts,
        typer.Argument(
            metavar="ID",
            help="Of a failed check, or its first characters. Default: all that are remembered.",
            show_default=False,
        ),
    ] = None,
    list_only: Annotated[
        bool, option("--list", help="Show the failed checks that are remembered; run nothing.")
    ] = False,
    debug: Debug = False,
) -> int:
    """Make failed checks again, with the seed and inputs that they had.

    `gradlint check` remembers them in .gradlint_cache, below the working directory. Exits with 0 if
    all are mended, 1 if one is still there or can't be made, 5 if none is remembered.
    """
    from gradlint.gate.failed_checks import FailedCheck, Replayed, chosen, read_checks
    from gradlint.gate.failed_checks import replay as made_again

    def line(check: FailedCheck) -> str:
        return clean(f"{check.id}  {check.code}  {check.target}: {check.message}")

    known = read_checks(_console.print_warning)
    wanted = chosen(known, ids or [])
    if not wanted:
        _console.write("no failed check is remembered here\n")
        return 5
    if list_only:
        for check in wanted:
            _console.write(f"{line(check)}\n")
        return 0

    def tell(item: Replayed) -> None:
        outcome = {"unknown": "not known"}.get(item.outcome, item.outcome)
        why = f" ({clean(item.why)})" if item.why else ""
        _console.write(f"{outcome:<11}  {line(item.check)}{why}\n")

    with _console.worker(debug=debug):
        done = made_again(wanted, tell)
    counts = {
        name: sum(item.outcome == name for item in done) for name in ("mended", "still there")
    }
    _console.write(
        f"{counts['mended']} of {len(done)} mended, {counts['still there']} still there\n"
    )
    return int(counts["mended"] < len(done))
