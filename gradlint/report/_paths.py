"""Paths of source as other programs want them. A report holds them as seen from the folder in which
gradlint ran."""

from __future__ import annotations

import os
from urllib.parse import quote


def slashed(path: str) -> str:
    """``path`` with slashes, also where the system writes it otherwise."""
    return path.replace(os.sep, "/")


def uri(path: str) -> str:
    """``path`` as a reference (RFC 3986): relative, or ``file://…`` where the path is absolute.

    A colon, a space, a line end or what else would be taken for a part of the syntax is encoded.
    """
    plain = slashed(path)
    encoded = quote(plain.encode("utf-8", "backslashreplace"), safe="/~")
    if not os.path.isabs(path):
        return encoded
    return f"file://{encoded}" if encoded.startswith("/") else f"file:///{encoded}"


def from_root(path: str, variable: str) -> str:
    """``path`` as seen from the root of the checkout, which a CI system names in an environment
    variable; as it is where that is not set, or lies elsewhere."""
    root = os.environ.get(variable, "")
    if not root or not os.path.isdir(root):
        return slashed(path)
    try:
        seen = os.path.relpath(os.path.realpath(path), os.path.realpath(root))
    except (OSError, ValueError):  # another drive, the folder is gone, a NUL in the name
        return slashed(path)
    return slashed(path if seen.startswith(os.pardir) else seen)
