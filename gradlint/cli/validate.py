"""``gradlint validate``: are these specs right? Nothing is run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any

import typer

from gradlint.base.errors import Problem, SpecError
from gradlint.base.terminal import clean
from gradlint.cli import console as _console
from gradlint.cli.bounded import OutOfBounds, in_bounds
from gradlint.cli.options import SkipOthers, TextOrJson, with_operators

#: Exit codes: all correct, mistakes, no spec found.
_RIGHT, _WRONG, _NONE = 0, 2, 5

#: What checking one spec may cost (the largest of this repository takes 10 ms).
_SECONDS, _MEGABYTES = 2, 256


def validate(
    specs: Annotated[
        list[str],
        typer.Argument(metavar="SPEC", help="YAML specs, or folders of them."),
    ],
    skip_others: SkipOthers = False,
    output_format: TextOrJson = "text",
) -> int:
    """Check specs without running anything, and show every mistake and where it is.

    Exits with 0 if all are right, 2 if any is wrong, 5 if a folder contains none.
    """
    if skip_others:
        specs = with_operators(specs)
        if not specs:
            return _RIGHT
    results = [_bounded(path) for path in dict.fromkeys(_files(specs))]
    if output_format == "json":
        _console.write_json({"schema_version": 1, "specs": results})
    else:
        _console.write(_text(results))
    if not results:
        return _NONE
    return _RIGHT if all(result["ok"] for result in results) else _WRONG


def _files(paths: list[str]) -> Iterator[str]:
    from gradlint.targets.locate import folder_files, is_spec

    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        for file in folder_files(path):
            if file.endswith((".yaml", ".yml")) and is_spec(file):
                yield file


def _bounded(path: str) -> dict[str, Any]:
    """What is said of one spec, by a process of its own that can't take long or grow large."""
    # Imported here, so that the process starts with all it needs.
    from gradlint.spec import load, plan  # noqa: F401

    try:
        result: dict[str, Any] = in_bounds(_judged, path, seconds=_SECONDS, megabytes=_MEGABYTES)
    except OutOfBounds:
        message = f"checking it takes more than {_SECONDS} s or {_MEGABYTES} MB: not a spec"
        return _refused(path, [Problem(message)])
    return result


def _refused(path: str, problems: list[Problem]) -> dict[str, Any]:
    shown = [asdict(problem) for problem in problems]
    return {"path": path, "ok": False, "samples": [], "problems": shown}


def _judged(path: str) -> dict[str, Any]:
    from gradlint.spec.load import load
    from gradlint.spec.plan import sample_labels

    try:
        loaded = load(path)
    except SpecError as error:
        return _refused(path, error.problems)
    labels = sample_labels(loaded)
    return {"path": path, "ok": True, "samples": labels, "problems": []}


def _text(results: list[dict[str, Any]]) -> str:
    lines = []
    for result in results:
        if result["ok"]:
            count = len(result["samples"])
            samples = f"{count} sample{'s' * (count != 1)}" if count else "inputs to be inferred"
            lines.append(f"{clean(result['path'])}: ok, {samples}")
        else:
            problems = [Problem(**problem) for problem in result["problems"]]
            lines.append(str(SpecError(result["path"], problems)))
    wrong = sum(not result["ok"] for result in results)
    mistakes = sum(len(result["problems"]) for result in results)
    if wrong:
        lines.append(
            f"{wrong} of {len(results)} spec{'s' * (len(results) != 1)} wrong, "
            f"{mistakes} mistake{'s' * (mistakes != 1)}."
        )
    if not results:
        lines.append("No specs found: nothing was checked.")
    return "\n".join(lines) + "\n"
