"""Walking a folder for files that may define operators."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from gradlint.targets._locate import skipped_folder

#: A YAML file in a folder is taken for a spec when a line starts with one of these.
_MARKS = re.compile(
    r"^(?:['\"]?(?:op|forward|surrogate|extension)['\"]?\s*:|#.*\$?schema\b.*gradlint)",
    re.MULTILINE,
)

#: Fewer bytes than this are read to tell whether a YAML file is a spec.
_HEAD_BYTES = 65_536


def folder_files(folder: str) -> Iterator[str]:
    """Every .py, .yaml and .yml file below ``folder``, sorted; hidden folders, caches, build
    folders and virtual environments are left out, links to folders are not followed."""
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if not skipped_folder(os.path.join(parent, name))
        )
        for name in sorted(files):
            if name.endswith((".py", ".yaml", ".yml")) and not name.startswith("."):
                yield os.path.normpath(os.path.join(parent, name))


def is_spec(path: str) -> bool:
    """Whether a YAML file found in a folder is an op spec rather than some tool's settings."""
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            text = handle.read(_HEAD_BYTES)
    except OSError:
        return False
    return _MARKS.search(text) is not None
