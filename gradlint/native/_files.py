"""Digests of files and values, and files that are written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

#: Hexadecimal digits of a digest that names a folder; 64 bits, as few builds share one cache.
_DIGITS = 16


def digest_of_file(path: str | Path) -> str | None:
    """SHA-256 of a file; None where it can't be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return None


def digest_of(value: Any) -> str:
    """A short digest of a JSON-able value."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def write_whole(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` so that a reader sees all of it or what was there before."""
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in ``path``; empty where there is none that can be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
