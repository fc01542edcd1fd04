"""While a run is under way: a progress bar."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import Progress

from gradlint.base.terminal import clean, obeyed
from gradlint.model.report import TargetReport
from gradlint.native.progress import Progress as BuildProgress

OnProgress = Callable[[int, int, "TargetReport"], None]


@contextmanager
def bar(*, quiet: bool = False) -> Iterator[OnProgress | None]:
    """A progress bar on stderr, if that is a terminal; it appears for two targets or more.

    It also shows extensions that are being built.
    """
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from gradlint.native.progress import Line, reporting, words

    progress: Progress | None = None
    line = Line(sys.stderr)

    def build(news: BuildProgress) -> None:
        if progress is None:
            line(news)
        else:
            progress.update(progress.task_ids[0], target=clean(words(news)))

    def advance(done: int, total: int, report: TargetReport) -> None:
        nonlocal progress
        line.clear()
        if total < 2:
            return
        if progress is None:
            progress = _made()
            progress.start()
            progress.add_task("", target="")
        target = clean(report.target)
        progress.update(progress.task_ids[0], completed=done, total=total, target=target)

    try:
        with reporting(build):
            yield advance
    finally:
        line.clear()
        if progress is not None:
            progress.stop()


def _made() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.table import Column

    return Progress(
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.fields[target]}", markup=False, table_column=Column(no_wrap=True)),
        # What it shows is clean, and the bar moves by escape sequences.
        console=Console(file=obeyed(sys.stderr), markup=False, highlight=False),
        transient=True,
    )
