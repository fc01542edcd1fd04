"""The process that builds: ``python -m gradlint.native._child request.json answer.json``.

Torch's extension builder runs here, away from the process that asked: what a source does when it
is loaded, and what the builder leaves in its process, stay here. What compilers write goes to the
standard output as it comes.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from typing import Any

if sys.platform != "win32":
    import resource


_PR_SET_PDEATHSIG = 1  # linux/prctl.h

#: Seconds that ninja is given to end its compilers.
_GRACE = 0.5


def main(request: str, answer: str) -> None:
    """Build what the file ``request`` asks for and write what went wrong to ``answer``."""
    _end_together()
    _unlimited()
    with open(request, encoding="utf-8") as file:
        wanted: dict[str, Any] = json.load(file)
    told: dict[str, str] = {}
    try:
        from torch.utils import cpp_extension

        cpp_extension.load(is_python_module=False, verbose=True, **wanted)
    except BaseException as error:
        told = {"type": type(error).__name__, "text": told_by(error)}
    with open(answer, "w", encoding="utf-8") as file:
        json.dump(told, file)
    sys.stdout.flush()
    os._exit(0)  # what was loaded may not like to be unloaded


def told_by(error: BaseException) -> str:
    """The text of ``error``; of what it was raised from where that says more."""
    cause = error.__cause__ or error.__context__
    if isinstance(error, OSError) and isinstance(cause, OSError):
        return str(cause)  # "Could not load this library" hides the loader's own words
    return str(error)


def _end_together() -> None:
    """A group of its own, ended as a whole when the process that asked ends or says so."""
    if not hasattr(os, "setpgid"):
        return
    os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, _end)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _end(*_: object) -> None:
    # Compilers are in groups of their own, which ninja ends when it is told to end.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    time.sleep(_GRACE)
    os.killpg(0, signal.SIGKILL)


def _unlimited() -> None:
    """Without the limit on memory of a worker that checks an op: it is not meant for compilers."""
    if sys.platform == "win32":
        return

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


if __name__ == "__main__":
    main(*sys.argv[1:])
