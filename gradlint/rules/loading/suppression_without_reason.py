"""Suppression without a reason.

What it finds
-------------
A comment, or a `gradlint_ignore`, accepts a finding and does not say why. It is obeyed all the
same. (A spec can't leave the reason out.)

Why it matters
--------------
Whoever reads it later can't tell whether the defect is meant, was put off, or is long gone.

Bad
---
```python
import torch

class Op(torch.autograd.Function):  # gradlint: ignore[GL503]
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        return grad_output * 2

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
mylib/ops.py:3:37  GL011  GL503 is accepted without a reason
  help       write why behind it: # gradlint: ignore[GL503] the reason
```

References
----------
- nolintlint of golangci-lint: https://golangci-lint.run/docs/linters/configuration/#nolintlint
"""

from __future__ import annotations

from gradlint.experiments.loading.process_findings import suppression_finding
from gradlint.model.report import Finding, Location
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)


def make_finding(
    target: str,
    codes: str,
    location: Location | None,
    settings: Settings,
    *,
    declared: bool = False,
) -> Finding:
    """The finding that ``codes`` are accepted without a reason.

    Args:
        target: as typed.
        codes: as they are written.
        location: of the comment, or of the operator.
        declared: whether the operator itself declares it, instead of a comment.
    """
    several = "," in codes
    step = f"write why behind it: # gradlint: ignore[{codes}] the reason"
    if declared:
        step = f'say why: gradlint_ignore = {{"{codes.partition(",")[0]}": "the reason"}}'
    return suppression_finding(
        RULE,
        target,
        f"{codes} {'are' if several else 'is'} accepted without a reason",
        step,
        {},
        location,
        settings,
    )
