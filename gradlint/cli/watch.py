"""``gradlint watch``: check again what is saved."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from gradlint.base.terminal import clean
from gradlint.cli import console as _console
from gradlint.cli.options import (
    TARGET,
    Color,
    Device,
    Dtype,
    Ignore,
    Imports,
    Inputs,
    Jobs,
    Order,
    Seed,
    Select,
    Texts,
    Timeout,
    Untrusted,
    require,
    targets_of,
)
from gradlint.rules.catalogue import CATALOGUE, rule_names

if TYPE_CHECKING:
    from gradlint.watching import Happening, Shown

#: Milliseconds in which several files that are saved together are seen as one, and between two
#: looks for them. Heuristic: editors write a file within a few.
_DEBOUNCE_MS, _STEP_MS = 60, 15

#: Key → what it asks for.
_KEYS = {"r": "rerun", "v": "more", "q": "quit"}

_HELP = "r: check all again, v: show more or less, q: quit"


def watch(
    targets: Annotated[
        Texts, typer.Argument(metavar="TARGET", help=TARGET, show_default=False)
    ] = None,
    inputs: Inputs = None,
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
    color: Color = "auto",
) -> int:
    """Check operators again whenever their files, or what they import, are saved.

    Rules of first order come first, all rules after them. Keys: r checks all again, v shows more or
    less, q quits. Without a terminal there are no keys, and Ctrl-C ends it.
    """
    require("watchfiles", "watch")
    from gradlint.model.resolve import resolve_settings
    from gradlint.watching import Session, waiting

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
        },
        rules=rule_names(),
        warn=_console.print_warning,
    )
    wanted = targets_of(targets, settings, "watch")
    happenings: queue.Queue[Happening] = queue.Queue()

    def take(seconds: float) -> Happening:
        try:
            return happenings.get(timeout=seconds) if seconds else happenings.get_nowait()
        except queue.Empty:
            return None

    def show(shown: Shown) -> None:
        _show(shown, color)

    ended = threading.Event()
    watcher = threading.Thread(target=_watch_files, args=(wanted, happenings, ended), daemon=True)
    watcher.start()
    try:
        with _keys(happenings):
            return Session(wanted, settings, waiting(take), show).run()
    finally:
        ended.set()


def _watch_files(
    targets: list[str], happenings: queue.Queue[Happening], ended: threading.Event
) -> None:
    """Put every file that is saved into ``happenings``."""
    import watchfiles

    from gradlint.watching import ENDINGS, Files, folders_of

    def wanted(_: watchfiles.Change, path: str) -> bool:
        parts = path.split(os.sep)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in parts[1:-1])
        return path.endswith(ENDINGS) and not (hidden and "site-packages" not in parts)

    changes = watchfiles.watch(
        *folders_of(targets),
        watch_filter=wanted,
        debounce=_DEBOUNCE_MS,
        step=_STEP_MS,
        stop_event=ended,
        raise_interrupt=False,
    )
    for batch in changes:
        paths = frozenset(path for _, path in batch)
        happenings.put(Files(paths, _saved(paths)))


def _saved(paths: frozenset[str]) -> float:
    """When the last of ``paths`` was saved."""
    times = [os.stat(path).st_mtime for path in paths if os.path.exists(path)]
    return min(max(times, default=time.time()), time.time())


@contextmanager
def _keys(happenings: queue.Queue[Happening]) -> Iterator[None]:
    """In the body, keys of the terminal are put into ``happenings``, if there is one."""
    if not (sys.stdin is not None and sys.stdin.isatty() and os.name == "posix"):
        yield
        return
    import termios
    import tty

    stream = sys.stdin.fileno()
    before = termios.tcgetattr(stream)

    def read() -> None:
        while True:
            key = os.read(stream, 1).decode(errors="replace").lower()
            if not key:
                return
            if key in _KEYS:
                happenings.put(_KEYS[key])  # type: ignore[arg-type]

    tty.setcbreak(stream)  # Ctrl-C stays what it is
    try:
        threading.Thread(target=read, daemon=True).start()
        _console.write(_HELP + "\n", sys.stderr)
        yield
    finally:
        termios.tcsetattr(stream, termios.TCSADRAIN, before)


def _show(shown: Shown, color: str) -> None:
    """Write what came of a look: findings in lines at first, the whole report at the end."""
    from gradlint.report.render import render

    run, report = shown.run, shown.run.report
    if report.interrupted:
        return
    whole = shown.stage == "all"
    if report.findings or shown.more:
        options = _console.stream_options(sys.stdout, color)
        format = "full" if whole else "concise"
        text = render(report, format, verbose=int(shown.more), rules=CATALOGUE, **options)
        _console.write(text, colored=options["color"])
    for error in run.usage:
        _console.print_error(error)
    for text in run.internal:
        _console.print_internal(text.partition("\n")[0], debug=False)
    counts = report.summary()
    verdicts = ("pass", "fail", "inconclusive", "error", "skipped")
    words = ", ".join(f"{counts[name]} {name}" for name in verdicts if counts[name])
    rules = "all rules" if whole else "rules of first order"
    _console.write(clean(f"{rules}: {words or 'nothing checked'} ({shown.seconds:.2f} s)") + "\n")
