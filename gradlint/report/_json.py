"""The report for programs: the JSON contract, one object."""

from __future__ import annotations

import json

from gradlint.report._model import Report


def to_json(report: Report) -> str:
    """``report`` as JSON in ASCII, indented by two, keys in the order of the model."""
    return json.dumps(report.to_dict(), indent=2, allow_nan=False) + "\n"
