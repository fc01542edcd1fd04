"""Extensions that a worker is building: PyTorch compiles some when they are first called.

``torch.utils.cpp_extension`` runs ninja in the folder of the extension, and holds a file there as a
lock. A build takes minutes, which say nothing of the operator. One that is killed leaves the lock,
and every program that needs the extension waits for it from then on. (Linux.)
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from gradlint.running import _keeper

#: Seconds that a worker may take beyond its time-out while an extension is built (heuristic: large
#: ones for a GPU take some minutes).
MOST_SECONDS = 900.0

#: The program that builds, and the lock beside what it builds (torch/utils/file_baton.py).
_BUILDER, _LOCK = "ninja", "lock"


def below(pid: int | None) -> list[Path]:
    """The folders in which extensions are being built by processes that ``pid`` started, or those
    that they started; empty where /proc does not tell."""
    found: dict[Path, None] = {}  # a process that it forks has its name until it runs another
    left = [pid] if pid is not None else []
    while left:
        for child in _keeper.children(left.pop()):
            left.append(child)
            with suppress(OSError):
                if Path(f"/proc/{child}/comm").read_text().strip() == _BUILDER:
                    found[Path(os.readlink(f"/proc/{child}/cwd"))] = None
    return list(found)


def release(folders: list[Path]) -> None:
    """Remove the locks of builds that were ended."""
    for folder in folders:
        with suppress(OSError):
            (folder / _LOCK).unlink()
