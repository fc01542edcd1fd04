"""Where a C++ ``torch::autograd::Function`` stands in the sources of an extension."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gradlint.report import Location
from gradlint.targets._source_file import read_source, shown_path


def function_places(name: str, sources: Sequence[str]) -> dict[str, Location]:
    """``forward`` and ``backward`` → place, of the class ``name``; empty where it is not found.

    Args:
        name: of the class, without namespaces and arguments.
        sources: paths of C++ and CUDA files.
    """
    head = re.compile(rf"\b(?:struct|class)\s+{re.escape(name)}\b[^;{{]*\{{")
    for path in sources:
        source = read_source(path)
        text = "\n".join(source.lines) if source is not None else ""
        found = head.search(text)
        if found is None:
            continue
        made = {}
        for method in ("forward", "backward"):
            line = re.compile(rf"^.*\b{method}\s*\(.*$", re.MULTILINE).search(text, found.end())
            if line is not None:
                made[method] = _line(path, text, line.start(), line[0])
        return made
    return {}


def _line(path: str, text: str, start: int, line: str) -> Location:
    line = line.rstrip("{ \t")
    number = text.count("\n", 0, start) + 1
    column = len(line) - len(line.lstrip()) + 1
    return Location(shown_path(path), number, column, number, len(line) + 1)
