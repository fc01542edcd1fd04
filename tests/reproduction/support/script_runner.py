"""Runs scripts as ``python -I SCRIPT`` does, without importing PyTorch for each of them.

Importing it takes longer than most scripts, so one process does it, and is forked for each script.
That process knows nothing of gradlint.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

#: What that process does: for each line, in JSON a script and a file for what it prints, it says
#: the exit code.
PROGRAM = """
import json, os, runpy, sys, traceback
import torch
torch.set_num_threads(1)
for line in sys.stdin:
    script, printed = json.loads(line)
    process = os.fork()
    if process == 0:
        out = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(out, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.argv = [script]
        code = 0
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as error:
            code = error.code
            if not isinstance(code, (int, type(None))):
                print(code, file=sys.stderr)
                code = 1
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or 0)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""


class ScriptRunner:
    """The process that has imported PyTorch.

    Args:
        folder: for what scripts print.
    """

    def __init__(self, folder: Path) -> None:
        self._printed = folder / "printed"
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> ScriptRunner:
        return self

    def __exit__(self, *error: Any) -> None:
        self._process.communicate()  # it ends with what it reads

    def __call__(self, script: Path) -> tuple[int, str]:
        """The exit code of a script, and what it printed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(script), str(self._printed)]) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline()), self._printed.read_text()
