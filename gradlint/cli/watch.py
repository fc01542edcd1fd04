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

from gradlint.base.errors import GradlintError
from gradlint.base.terminal import clean
from gradlint.cli import console as _console
from gradlint.cli.fix import telling
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
from gradlint.targets.source_file import shown_path

if TYPE_CHECKING:
    from gradlint.model.report import Report
    from gradlint.model.settings import Settings
    from gradlint.repair.search import Mended
    from gradlint.watching import Happening, Shown

#: Milliseconds in which several files that are saved together are seen as one, and between two
#: looks for them. Heuristic: editors write a file within a few.
_DEBOUNCE_MS, _STEP_MS = 60, 15

#: Key → what it asks for.
_KEYS = {"r": "rerun", "v": "more", "f": "fix", "y": "yes", "n": "no", "q": "quit"}

_HELP = "r: check all again, v: show more or less, f: search for a fix, q: quit"


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
    less, f searches for changes that mend what is found and asks before it writes them, q quits.
    Without a terminal there are no keys, and Ctrl-C ends it.
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
            mending = _Mending(settings)
            return Session(wanted, settings, waiting(take), show, mending).run()
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


class _Mending:
    """Changes of the source as ``gradlint fix`` finds, shows and writes them.

    Args:
        settings: of every look.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._found: list[Mended] = []

    def search(self, report: Report) -> bool:
        """Search for changes for what ``report`` says, and show them."""
        from gradlint.repair.installed import check_installed

        try:
            check_installed("watch")
            from gradlint.repair.mend import fixes

            self._found = fixes(report, self._settings, begin=telling())
        except GradlintError as error:
            _console.print_error(error)
            return False
        self._page(self._found)
        return any(one.fix is not None for one in self._found)

    def ask(self) -> None:
        """Ask whether to write what was shown."""
        count = sum(one.fix is not None for one in self._found)
        what = "the change" if count == 1 else f"the {count} changes"
        _console.write(f"write {what}? y: yes, n: no\n")

    def write(self) -> None:
        """Write what was shown, each file whole or not at all, and not if it changed meanwhile."""
        from gradlint.repair.writing import write_all

        written, failures = write_all(self._found, self._settings)
        for one in written:
            path = one.source.path if one.source is not None else ""
            _console.write(clean(f"{one.target}: written to {shown_path(path)}") + "\n")
        for error in failures:
            _console.print_error(error)

    def leave(self) -> None:
        """Say that nothing is written."""
        _console.write("nothing was written\n")

    def _page(self, found: list[Mended]) -> None:
        from gradlint.report.fixes import FixEntry, add_fixes

        entries = [FixEntry(one.target, one.findings, one.fix, one.why) for one in found]
        _console.write_page(lambda page, _: add_fixes(page, entries, asks=True))


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
