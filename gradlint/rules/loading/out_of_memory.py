"""Out of memory.

What it finds
-------------
The operator ran out of memory on a small sample: an allocation was refused, by Python, the host or
the device, or the worker grew beyond its share and was ended.

Why it matters
--------------
On inputs of a few elements this is a mistake, not a lack of hardware: an index tensor expanded to
the product of all sizes, a buffer sized by a value instead of a shape, a list that grows forever.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        grid = torch.empty([x.numel() * 1000] * 4)  # sized by a power of the input's size
        return x * 2 + grid[0, 0, 0, 0]

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2

    @staticmethod
    def sample_inputs():
        return (torch.ones(8),)
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2

    @staticmethod
    def sample_inputs():
        return (torch.ones(8),)
```

How it looks
------------
```text
mylib/ops.py:6:16  GL007  out of memory in forward
  original   DefaultCPUAllocator: can't allocate memory: you tried to allocate …
  help       look for an allocation that grows with the product of the sizes
```

References
----------
- Memory management on CUDA: https://docs.pytorch.org/docs/stable/notes/cuda.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradlint.experiments.loading.running_findings import running_finding, where
from gradlint.model.report import Excerpt, Finding, Location
from gradlint.model.rule import Outcome
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import rule_of

if TYPE_CHECKING:
    from gradlint.experiments.subject import Subject

RULE = rule_of(__name__)

_HELP = (
    "look for an allocation that grows with the product of the sizes or with values instead of "
    "shapes; if the op is honest, give it smaller inputs (--inputs)"
)


def found(
    target: str,
    phase: str,
    settings: Settings,
    *,
    rule: str | None = None,
    limit_mb: float | None = None,
    message: str = "",
    location: Location | None = None,
    excerpt: Excerpt | None = None,
    sample: str | None = None,
    output_tail: Sequence[str] = (),
    stack: Sequence[str] = (),
) -> Finding:
    """The finding that the worker of ``target`` ran out of memory.

    Args:
        phase: one of ``gradlint.ops.phase.PHASES``.
        rule: code of the check that was running, if any.
        limit_mb: the share of memory that was allowed, in MiB.
        message: the exception's text, where there was one.
    """
    limit = f": more than {limit_mb:,.0f} MiB" if limit_mb is not None else ""
    return running_finding(
        RULE,
        target,
        f"out of memory {where(phase, rule)}{limit}",
        settings,
        location=location,
        excerpt=excerpt,
        evidence={
            "phase": phase,
            "rule": rule,
            "limit_mb": limit_mb,
            "original": message,
            "traceback": list(stack),
            "output_tail": list(output_tail),
        },
        help=_HELP,
        sample=sample,
        select=rule or "",
    )


def probe(subject: Subject) -> Outcome:
    """Report an allocation that was refused while the worker lived on."""
    from gradlint.experiments.raised_errors import (
        defining_file,
        is_out_of_memory,
        raised_evidence,
        raised_place,
    )

    error = subject.run.error
    if error is None or not is_out_of_memory(error.error):
        return Outcome("pass")
    prefer = defining_file(subject)
    finding = subject.finding(
        RULE,
        f"out of memory in {error.phase}",
        place=raised_place(error.error, prefer),
        evidence={"phase": error.phase, **raised_evidence(error.error, prefer)},
        help=_HELP,
    )
    return Outcome("fail", [finding])
