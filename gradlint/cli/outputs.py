"""Reports of a command: which are asked for, whether they can be written, and writing them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from gradlint.base.errors import GradlintError
from gradlint.base.terminal import clean, disarmed, disarmed_json
from gradlint.cli import console as _console
from gradlint.cli.options import one_of
from gradlint.model.report import Report
from gradlint.model.sweep import SweepReport
from gradlint.rules.catalogue import CATALOGUE

#: The file to which a step of GitHub Actions adds what its page shows.
_STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


@dataclass(frozen=True)
class Outputs:
    """The reports that a command writes.

    Args:
        wanted: format and path of each; ``-`` is the standard output.
        color: auto, always or never.
        verbose: 1 or more to show everything.
        quiet: whether a report that is ok is not printed.
    """

    wanted: list[tuple[str, str]] = field(default_factory=list)
    color: str = "auto"
    verbose: int = 0
    quiet: bool = False

    @classmethod
    def asked_for(
        cls,
        format: str,
        path: str | None,
        extra: Sequence[str],
        *,
        color: str,
        verbose: int,
        quiet: bool,
    ) -> Outputs:
        """What the options name, checked before anything runs.

        Args:
            format: of ``--output-format``.
            path: of ``-o``; None for the standard output.
            extra: ``FORMAT=PATH`` of each ``--report``.
            color, verbose, quiet: see the class.

        Raises:
            GradlintError: a format is unknown or needs what is not installed, or a file can't be
                written.
        """
        from gradlint.report.render import FORMATS, check_installed

        first = "concise" if quiet and format == "full" else format
        wanted = [(first, path or "-", "--output-format"), *map(_named, extra)]
        for name, file, flag in wanted:
            one_of(name, FORMATS, flag)
            check_installed(name)
            _console.check_writable(file, _path_option(flag))
        _console.check_distinct((_path_option(flag), file) for _, file, flag in wanted)
        pairs = [(name, file) for name, file, _ in wanted]
        return cls(pairs, color=color, verbose=verbose, quiet=quiet)

    def without_people(self) -> Outputs:
        """Those that a program reads or that go to a file, for a run without a target."""
        from gradlint.report.render import PAGES

        kept = [(name, path) for name, path in self.wanted if name not in PAGES or path != "-"]
        return Outputs(kept, self.color, self.verbose, self.quiet)

    def write(self, report: Report, sweeps: Sequence[SweepReport] = ()) -> list[GradlintError]:
        """Write every report; what went wrong with those that could not be written."""
        writers = [
            partial(self._write, report, sweeps, format, path) for format, path in self.wanted
        ]
        if any(format == "github" for format, _ in self.wanted):
            writers.append(partial(_add_step_summary, report))
        return _console.failures(writers)

    def _write(self, report: Report, sweeps: Sequence[SweepReport], format: str, path: str) -> None:
        from gradlint.report.render import PAGES, render_parts

        if path != "-":
            parts = render_parts(
                report,
                format,
                width=100,
                verbose=self.verbose,
                rules=CATALOGUE,
                sweeps=sweeps,
            )
            _console.write_file(path, parts)
        elif not (self.quiet and report.ok):
            options = _console.stream_options(sys.stdout, self.color)
            parts = render_parts(
                report, format, verbose=self.verbose, rules=CATALOGUE, sweeps=sweeps, **options
            )
            _console.write_parts(
                _for_a_log(parts, format), colored=options["color"] and format in PAGES
            )


def _for_a_log(parts: Iterable[str], format: str) -> Iterable[str]:
    """``parts`` with nothing in them that the log of a CI system would obey, but for what the
    format means to be obeyed. Pages are laid out without it."""
    if format in ("json", "jsonl", "sarif", "gitlab"):
        return map(disarmed_json, parts)
    if format in ("junit", "markdown", "html"):
        return ("\n".join(map(disarmed, part.split("\n"))) for part in parts)
    return parts


def _named(text: str) -> tuple[str, str, str]:
    name, mark, file = text.partition("=")
    if not mark or not file:
        raise GradlintError(
            f"expected FORMAT=PATH, got {text!r}",
            place="--report",
            hint="for example --report json=gradlint.json",
        )
    return name, file, "--report"


def _path_option(flag: str) -> str:
    """The option that names the file whose format ``flag`` names."""
    return "-o" if flag == "--output-format" else flag


def _add_step_summary(report: Report) -> None:
    """Add ``report`` to the page of the step of GitHub Actions that this is, if it is one.

    GitHub takes all of what a step adds, or nothing where it is too much.
    """
    from gradlint.report.github import SUMMARY_BYTES, step_summary

    path = os.environ.get(_STEP_SUMMARY)
    if not path:
        return
    try:
        with open(path, "ab") as file:
            file.write(step_summary(report, SUMMARY_BYTES - file.tell()))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise GradlintError(
            f"can't be written: {why}", place=f"{_STEP_SUMMARY} ({clean(path)})"
        ) from None
