"""GitLab's code quality report: a list of issues.

https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format. Issues with the same
fingerprint are shown once, and the name of the check is not shown, so the description has both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradlint.base.terminal import clean
from gradlint.model.report import Report, Severity
from gradlint.report._brief import title
from gradlint.report._json_text import json_line
from gradlint.report._paths import from_root
from gradlint.report._ranked import Ranked, ranked

_SEVERITIES: dict[Severity, str] = {"error": "critical", "warning": "major", "info": "info"}


def gitlab_parts(report: Report) -> Iterator[str]:
    """``report`` as a list of issues in JSON, worst first, an issue a piece."""
    mark = "["
    for item in ranked(report):
        yield f"{mark}\n{json_line(_issue(item))}"
        mark = ","
    yield "[]\n" if mark == "[" else "\n]\n"


def _issue(item: Ranked) -> dict[str, Any]:
    finding, place = item.finding, item.place
    words = f"{title(finding)}: {finding.message}"
    if finding.cause_text:
        words += f" ({finding.cause_text})"
    # GitLab shows no issue without a place.
    path = from_root(place.file, "CI_PROJECT_DIR") if place is not None else item.target.target
    return {
        "description": clean(words),
        "check_name": finding.code,
        "fingerprint": item.identity.fingerprint,
        "severity": _SEVERITIES[finding.severity],
        "location": {
            "path": path,
            "lines": {"begin": max(1, place.line) if place is not None else 1},
        },
    }
