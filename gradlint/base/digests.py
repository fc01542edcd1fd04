"""Hashes of files, of parts, and of gradlint itself."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

#: Bytes of a file that are hashed at a time.
_CHUNK = 2**20


def digest_of(path: str) -> str:
    """The SHA-256 of the file at ``path``; "" where there is none.

    Raises:
        OSError: it is there, and is no regular file or can't be read.
    """
    made = hashlib.sha256()
    try:
        if not os.path.isfile(path):
            os.stat(path)
            raise OSError(0, "is no regular file", path)
        with open(path, "rb") as file:
            for chunk in iter(lambda: file.read(_CHUNK), b""):
                made.update(chunk)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return made.hexdigest()


def digest(*parts: str | bytes) -> str:
    """The SHA-256 of ``parts``, each with its length, so that none can pass into the next."""
    made = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        made.update(len(data).to_bytes(8, "big"))
        made.update(data)
    return made.hexdigest()


@cache
def gradlint_digest() -> str:
    """Of gradlint itself: all of its files, as it may be installed from a checkout."""
    root = Path(__file__).parents[1]
    files = sorted(
        path
        for path in root.rglob("*")
        if path.is_file() and path.suffix != ".pyc" and "__pycache__" not in path.parts
    )
    return digest(*(part for path in files for part in _named(path, root)))


def _named(path: Path, root: Path) -> tuple[str, str]:
    return path.relative_to(root).as_posix(), digest_of(str(path))
