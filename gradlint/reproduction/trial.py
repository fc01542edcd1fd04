"""In a worker: whether a script shows what it was written for, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

#: Characters of what a script printed that are kept.
_TAIL = 2000


def tried(path: str, seconds: float) -> dict[str, Any]:
    """Run the script at ``path``.

    Returns:
        ``code``, its exit code, None where it took longer than ``seconds``; ``output``, the end of
        what it printed.
    """
    # It must run by itself: what makes gradlint importable is not handed on.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTHON")
    }
    try:
        done = subprocess.run(
            [sys.executable, "-B", path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"code": None, "output": ""}
    text = done.stdout.decode("utf-8", "replace")
    return {"code": done.returncode, "output": text[-_TAIL:]}
