"""Options that several commands share."""

from __future__ import annotations

import difflib
from typing import Annotated

import typer

from gradlint._errors import GradlintError


def one_of(value: str, choices: tuple[str, ...], option: str) -> str:
    """``value`` if it is one of ``choices``, else an error that offers the nearest."""
    if value in choices:
        return value
    near = difflib.get_close_matches(value, choices, 1, 0.3)
    hint = f"did you mean {near[0]}?" if near else f"choose from {', '.join(choices)}"
    raise GradlintError(f"{value!r} is not one of {', '.join(choices)}", place=option, hint=hint)


def _text_or_json(value: str) -> str:
    return one_of(value, ("text", "json"), "--output-format")


#: typer before 0.19 knows no ``Literal``.
TextOrJson = Annotated[
    str,
    typer.Option(
        "--output-format",
        metavar="FORMAT",
        help="text (default) or json.",
        show_default=False,
        callback=_text_or_json,
    ),
]
