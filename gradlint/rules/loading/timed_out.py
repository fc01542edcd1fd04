"""Timed out.

What it finds
-------------
One phase (importing, finding inputs, one check) ran longer than `--timeout` seconds and was ended.
The finding says which, and shows the Python stack at that moment where it is available.

Why it matters
--------------
An endless loop or a deadlock in one operator must not hang a CI run. An operator that is merely
slow needs smaller inputs for its check.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x
        while float(y.abs().max()) > 0:  # x / 2 never reaches 0 for NaN-free inputs above 0 …
            y = y / 2 + x * 1e-3  # … because this term stays
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
        y = x
        for _ in range(20):
            y = y / 2 + x * 1e-3
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
mylib/ops.py:7:1  GL006  timed out in forward, during GL401: more than 60 s
  help       if the op is merely slow, give it smaller inputs (--inputs) or more time (--timeout)
```

References
----------
- faulthandler: https://docs.python.org/3/library/faulthandler.html
"""

from __future__ import annotations

from gradlint.experiments.loading.process_findings import WorkerEnd
from gradlint.model.report import Finding
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)


def make_finding(end: WorkerEnd) -> Finding:
    """The finding that a phase ran longer than ``--timeout``."""
    seconds = end.settings.timeout
    slow = "if the op is merely slow, give it smaller inputs (--inputs) or more time (--timeout)"
    if end.phase == "import":  # nothing has been given to the op then
        slow = "if importing it is merely slow (does it build an extension?), allow more --timeout"
    return end.finding(
        RULE,
        f"timed out {end}: more than {seconds:g} s",
        {"timeout_s": seconds},
        help=f"{slow}; otherwise look for a loop that never ends, or a lock that is held",
    )
