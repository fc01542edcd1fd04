"""Process crashed.

What it finds
-------------
The worker process that ran the operator ended unexpectedly: a segmentation fault, an abort, an
illegal instruction, `os._exit`. The finding says in which phase and during which check, and shows
what the operator printed last. The remaining checks continue in a fresh worker.

Why it matters
--------------
A crash takes the whole training process with it and leaves no traceback. The usual origins are
native code that reads past a buffer, and kernels that rely on shapes, strides or dtypes without
checking them.

Bad
---
```python
import os
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        if x.numel() % 4 != 0:
            os.abort()  # what an assertion in native code does
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2

    @staticmethod
    def sample_inputs():
        return (torch.ones(3),)
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        if x.numel() % 4 != 0:
            padded = torch.nn.functional.pad(x, (0, -x.numel() % 4))
            return (padded * 2)[: x.numel()]
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2

    @staticmethod
    def sample_inputs():
        return (torch.ones(3),)
```

How it looks
------------
```text
mylib/ops.py:4:1  GL005  process crashed in forward, during GL401: SIGABRT
  help       run the reproduction under a debugger: gdb --args python -m gradlint check …
```

References
----------
- faulthandler: https://docs.python.org/3/library/faulthandler.html
- compute-sanitizer: https://docs.nvidia.com/compute-sanitizer/
"""

from __future__ import annotations

from gradlint.experiments.loading.process_findings import WorkerEnd
from gradlint.model.report import Finding
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)

#: What usually stands behind a signal.
_ORIGINS = {
    "SIGSEGV": "native code read or wrote memory that is not its own",
    "SIGBUS": "native code used a misaligned address, or a mapped file was cut short",
    "SIGABRT": "native code gave up: a failed assertion, or an exception that nothing caught",
    "SIGFPE": "native code divided an integer by zero",
    "SIGILL": "native code was built for another processor, or ran into a trap",
    "SIGKILL": "something outside ended the process: often the system, when memory runs out",
}


def make_finding(
    end: WorkerEnd, *, signal: str | None = None, exit_code: int | None = None
) -> Finding:
    """The finding that a worker ended by itself.

    Args:
        signal: name of the signal, such as "SIGSEGV".
        exit_code: exit code, where the process exited instead.
    """
    ending = signal or (f"exit code {exit_code}" if exit_code is not None else "no signal seen")
    cause = _ORIGINS.get(signal or "", "")
    if signal is None and exit_code is not None:
        cause = "the op ended the process itself: `os._exit`, or `exit` in native code"
    return end.finding(
        RULE,
        f"process crashed {end}: {ending}",
        {"signal": signal, "exit_code": exit_code},
        cause_text=cause,
        help="an op must report errors by raising; to find the line, run the reproduction with "
        "`python -X faulthandler -m gradlint …` or under a debugger",
    )
