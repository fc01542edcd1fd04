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

from collections.abc import Sequence

from gradlint.experiments.loading.process_findings import phase_words, process_finding
from gradlint.model.report import Excerpt, Finding, Location
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)


def make_finding(
    target: str,
    phase: str,
    settings: Settings,
    *,
    rule: str | None = None,
    location: Location | None = None,
    excerpt: Excerpt | None = None,
    sample: str | None = None,
    output_tail: Sequence[str] = (),
    stack: Sequence[str] = (),
) -> Finding:
    """The finding that a phase of ``target`` ran longer than ``settings.timeout`` seconds.

    Args:
        phase: one of ``gradlint.ops.phase.PHASES``.
        rule: code of the check that was running, if any.
        output_tail: last lines that were printed.
        stack: lines of the Python stack when it was ended, where known.
    """
    return process_finding(
        RULE,
        target,
        f"timed out {phase_words(phase, rule)}: more than {settings.timeout:g} s",
        settings,
        location=location,
        excerpt=excerpt,
        evidence={
            "phase": phase,
            "rule": rule,
            "timeout_s": settings.timeout,
            "traceback": list(stack),
            "output_tail": list(output_tail),
        },
        help="if the op is merely slow, give it smaller inputs (--inputs) or more time "
        "(--timeout); otherwise look for a loop that never ends, or a lock that is held",
        sample=sample,
        select=rule or "",
    )
