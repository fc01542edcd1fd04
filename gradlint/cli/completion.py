"""What a shell offers for the values of options and arguments, without torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, get_args

import typer

#: From what was typed of a value to what it may become, each with a few words.
Completer = Callable[[str], list[tuple[str, str]]]


def complete_codes(incomplete: str) -> list[tuple[str, str]]:
    """Codes of rules, and names where one was begun, behind those of a list that are complete."""
    from gradlint.rules.catalogue import CATALOGUE

    before, begun = _parts(incomplete)
    # Few words of explanation: typer breaks long ones into lines, which fish takes for more words.
    codes = [
        (rule.code, rule.name.replace("_", " "))
        for rule in CATALOGUE
        if rule.code.startswith(begun.upper())
    ]
    names = [(rule.name, rule.code) for rule in CATALOGUE if rule.name.startswith(begun.lower())]
    return [(before + word, text) for word, text in (codes or names)]


def complete_formats(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Formats of output, which most commands have two of."""
    of_reports = ctx.info_name in ("check", "report")
    return _words(_formats if of_reports else lambda: ("text", "json"))(incomplete)


def completer(names: Iterable[str]) -> Callable[..., Any] | None:
    """What completes the values of the option with these names, if anything but files does."""
    return next((_BY_OPTION[name] for name in names if name in _BY_OPTION), None)


def _words(values: Callable[[], Iterable[str]]) -> Completer:
    def complete(incomplete: str) -> list[tuple[str, str]]:
        before, begun = _parts(incomplete)
        return [(before + word, "") for word in values() if word.startswith(begun)]

    return complete


def _parts(incomplete: str) -> tuple[str, str]:
    """What of a list with commas is complete, and the word that was begun."""
    before, comma, begun = incomplete.rpartition(",")
    return before + comma, begun


def _formats() -> Iterator[str]:
    from gradlint.report.render import FORMATS

    return iter(FORMATS)


def _reports() -> Iterator[str]:
    return (f"{format}=" for format in _formats())


def _dtypes() -> Iterable[str]:
    from gradlint.model.settings import DTYPES

    return DTYPES


def _devices() -> Iterable[str]:
    from gradlint.model.settings import DEVICES

    return DEVICES


def _sanitizers() -> Iterable[str]:
    from gradlint.model.settings import SANITIZERS

    return SANITIZERS


def _levels() -> Iterable[str]:
    from gradlint.model.report import FailOn

    return get_args(FailOn)


_BY_OPTION: dict[str, Callable[..., Any]] = {
    "--output-format": complete_formats,
    "--select": complete_codes,
    "--ignore": complete_codes,
    "--dtype": _words(_dtypes),
    "--device": _words(_devices),
    "--order": _words(lambda: ("1", "2")),
    "--fail-on": _words(_levels),
    "--report": _words(_reports),
    "--sanitizer": _words(_sanitizers),
    "--color": _words(lambda: ("auto", "always", "never")),
}
