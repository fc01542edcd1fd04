"""The process that builds: ``python -m gradlint.native._child request.json answer.json``.

Torch's extension builder runs here and not in the process that asked for the build, which is thus
safe from what loading the library does and from state that the builder leaves behind. The output
of compilers goes to the standard output as it comes.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from typing import Any

from gradlint.native.errors import loader_text

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
    failure: dict[str, str] = {}
    try:
        # Here, where an error of the import is written to the answer like any other.
        from torch.utils import cpp_extension  # noqa: PLC0415 (loads torch)

        cpp_extension.load(is_python_module=False, verbose=True, **wanted)
    except BaseException as error:
        failure = {"type": type(error).__name__, "text": loader_text(error)}
    with open(answer, "w", encoding="utf-8") as file:
        json.dump(failure, file)
    sys.stdout.flush()
    os._exit(0)  # unloading the library could crash


def _end_together() -> None:
    """Make this a process group, which ends as a whole when the process that asked for it ends."""
    if not hasattr(os, "setpgid"):
        return
    os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, _end)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _end(*_: object) -> None:
    # Compilers are in process groups of their own, which ninja terminates when it is terminated.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.killpg(0, signal.SIGTERM)
    time.sleep(_GRACE)
    os.killpg(0, signal.SIGKILL)


def _unlimited() -> None:
    """Lift the memory limit that a worker has: it is meant for operators, not for compilers."""
    if sys.platform == "win32":
        return

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


if __name__ == "__main__":
    main(*sys.argv[1:])
