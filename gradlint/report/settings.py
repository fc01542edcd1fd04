"""The settings of a run as text: each with its value, and where that comes from."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from gradlint.base.terminal import clean
from gradlint.model.resolve import DESCRIPTIONS, toml_key
from gradlint.model.settings import Settings

#: Settings that are chosen anew for each run where nobody sets them.
_CHOSEN = {"seed": "drawn for this run", "jobs": "number of cores"}


def settings_text(settings: Settings, origins: Mapping[str, str]) -> str:
    """One line for each setting, as a file with ``[tool.gradlint]`` would have it; what is not set
    and has no value is a comment. Can be put into such a file.

    Args:
        settings: of the run.
        origins: field → where its value comes from, for those that are no default.
    """
    rows = []
    for field in dataclasses.fields(settings):
        if field.name not in DESCRIPTIONS:
            continue
        value = _toml(getattr(settings, field.name), field.name)
        line = f"# {toml_key(field.name)}" if value is None else f"{toml_key(field.name)} = {value}"
        rows.append((line, origins.get(field.name) or _CHOSEN.get(field.name, "default")))
    width = max(len(line) for line, _ in rows if len(line) <= _WIDEST)
    lines = [f"{clean(line):<{width}}  # {clean(origin)}" for line, origin in rows]
    return "\n".join(["[tool.gradlint]", *lines]) + "\n"


#: Longer lines do not push the others' origins to the right.
_WIDEST = 44


def _toml(value: Any, name: str) -> str | None:
    """``value`` in TOML; None where there is none."""
    if value is None:
        return None
    if name == "per_target_ignores":
        pairs = [f"{_text(pattern)} = {_toml(codes, '')}" for pattern, codes in value]
        return f"{{{', '.join(pairs)}}}"
    if name == "severities":
        return f"{{{', '.join(f'{code} = {_text(level)}' for code, level in value)}}}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_text(item) for item in value)}]"
    return _text(value) if isinstance(value, str) else repr(value)


def _text(value: str) -> str:
    """A basic string of TOML, whose escapes are those of JSON."""
    return json.dumps(value)
