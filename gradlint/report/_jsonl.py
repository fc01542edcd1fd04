"""``jsonl``: one object a line. The run comes first, then each target, and at last a summary, by
which a reader knows that nothing is missing."""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.model.report import Report
from gradlint.report._json_text import json_line

#: The types of the lines, in their order.
RUN, TARGET, SUMMARY = "run", "target", "summary"


def jsonl_parts(report: Report) -> Iterator[str]:
    """``report`` as lines of JSON, each with a ``type``; keys are those of ``json``."""
    entries = report.entries()
    targets, summary = entries.pop("targets"), entries.pop("summary")
    yield json_line({"type": RUN, **entries}) + "\n"
    for target in targets:
        yield json_line({"type": TARGET, **target}) + "\n"
    yield json_line({"type": SUMMARY, **summary}) + "\n"
