"""GitLab's code quality report: a list of issues.

https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format. Issues with the same
fingerprint are shown once, and the name of the check is not shown, so the description has both.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from gradlint.base.terminal import clean
from gradlint.model.fingerprint import Identity
from gradlint.model.report import Location, Report, Severity, Unchecked
from gradlint.report._brief import title, unchecked_text
from gradlint.report._json_text import json_line
from gradlint.report._paths import from_root
from gradlint.report._ranked import Ranked, ranked

_SEVERITIES: dict[Severity, str] = {"error": "critical", "warning": "major", "info": "info"}


def gitlab_parts(report: Report) -> Iterator[str]:
    """``report`` as a list of issues in JSON, worst first, an issue a piece."""
    mark = "["
    unchecked = map(_unchecked, report.unchecked)
    for issue in itertools.chain(unchecked, map(_issue, ranked(report))):
        yield f"{mark}\n{json_line(issue)}"
        mark = ","
    yield "[]\n" if mark == "[" else "\n]\n"


def _issue(item: Ranked) -> dict[str, Any]:
    finding, place = item.finding, item.place
    words = f"{title(finding)}: {finding.message}"
    if finding.cause_text:
        words += f" ({finding.cause_text})"
    return {
        "description": clean(words),
        "check_name": finding.code,
        "fingerprint": item.identity.fingerprint,
        "severity": _SEVERITIES[finding.severity],
        # GitLab shows no issue without a place.
        "location": _location(place or Location(item.target.target, 1)),
    }


def _unchecked(item: Unchecked) -> dict[str, Any]:
    """An operator that had to be checked and was not."""
    identity = Identity(f"{item.location.file}:{item.name}", "require-coverage")
    return {
        "description": unchecked_text(item),
        "check_name": "require-coverage",
        "fingerprint": identity.fingerprint,
        "severity": "critical",
        "location": _location(item.location),
    }


def _location(place: Location) -> dict[str, Any]:
    path = from_root(place.file, "CI_PROJECT_DIR")
    return {"path": path, "lines": {"begin": max(1, place.line)}}
