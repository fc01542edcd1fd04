"""JSON as reports are written: printable ASCII, finite numbers."""

from __future__ import annotations

import json
from typing import Any

from gradlint.model.report import jsonable


def json_line(value: Any) -> str:
    """``value`` as JSON on one line."""
    return json.dumps(jsonable(value), allow_nan=False).replace("\x7f", "\\u007f")
