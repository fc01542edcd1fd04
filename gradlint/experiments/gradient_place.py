"""Where in the source a wrong gradient is returned."""

from __future__ import annotations

from gradlint.experiments.subject import Subject
from gradlint.model.report import Excerpt, Location
from gradlint.targets import source
from gradlint.trace.op_io import Input

Place = tuple["Location | None", "Excerpt | None", "list[Location]"]


def gradient_place(subject: Subject, item: Input) -> Place:
    """The expression returned for ``item``, or where backward or the op is defined."""
    function = subject.op.function
    if function is not None and item.position is not None:
        own = subject.run.own
        place = source.returned_gradient(
            function, item.position, own.line if own else None, f"returned for `{item.name}`"
        )
        if place[0] is not None:
            return place
    if subject.run.own is not None and function is None:
        place = source.method(subject.run.own.function, "backward")
        if place[0] is not None:
            return place
    return source.definition(subject.op)


def returned_expression(place: Place) -> str:
    """The text under the carets of ``place`` where it is one line; else ""."""
    location, excerpt, _ = place
    if location is None or excerpt is None or not excerpt.label.startswith("returned"):
        return ""
    if location.end_column is None or location.end_line not in (None, location.line):
        return ""
    text = dict(excerpt.lines).get(location.line, "")
    return text[location.column - 1 : location.end_column - 1]
