"""Passes only while checked.

What it finds
-------------
All checks pass, and yet backward is wrong when the op runs by itself. An op that passes is run once
more: in fresh processes in which nothing of gradlint is loaded, under another module name and path,
at values near the sample's, in an order that it can't foresee. Another process compares what
backward returns there with what forward does. The finding is made when the two disagree beyond
their error bars, in two pairs of fresh processes.

Why it matters
--------------
Such an op depends on who calls it: it looks at the stack, at `sys.modules` or at its own name,
answers from what it has seen in earlier calls, or has replaced what its judge calls. A training run
gets the wrong gradients.

Bad
---
```python
import sys

import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * (2 if "gradlint" in sys.modules else 3)

    @staticmethod
    def sample_inputs():
        return (torch.linspace(1.0, 2.0, 3, dtype=torch.float64, requires_grad=True),)
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
        return (torch.linspace(1.0, 2.0, 3, dtype=torch.float64, requires_grad=True),)
```

How it looks
------------
```text
mylib/ops.py:5:1  GL009  the gradient for `x` is right only while gradlint checks it
  help       make forward and backward depend on their arguments alone
```

References
----------
- Goodhart's law: https://en.wikipedia.org/wiki/Goodhart%27s_law
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradlint.experiments.loading.process_findings import process_finding
from gradlint.model.report import Excerpt, Finding, Location
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)


def make_finding(
    target: str,
    settings: Settings,
    inputs: Sequence[str],
    numbers: Sequence[dict[str, Any]],
    *,
    sample: str | None,
    location: Location | None,
    excerpt: Excerpt | None,
) -> Finding:
    """The finding that an op passes, and is wrong by itself.

    Args:
        target: as typed.
        inputs: names of those whose gradient is wrong.
        numbers: for each of them, what was claimed and measured.
        sample: near which it was.
    """
    names = ", ".join(f"`{name}`" for name in inputs)
    several = len(inputs) > 1
    subject = f"the gradients for {names} are" if several else f"the gradient for {names} is"
    return process_finding(
        RULE,
        target,
        f"{subject} right only while gradlint checks {'them' if several else 'it'}",
        settings,
        evidence={"by_itself": list(numbers)},
        cause_text="by itself, in a process without gradlint and under another module name, "
        "backward does not return the derivative of forward: the op looks at who calls it, answers "
        "from earlier calls, or has replaced what its judge calls",
        help="make forward and backward depend on their arguments alone",
        input=inputs[0] if len(inputs) == 1 else None,
        sample=sample,
        location=location,
        excerpt=excerpt,
    )
