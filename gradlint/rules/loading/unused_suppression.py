"""Unused suppression.

What it finds
-------------
A comment, a `gradlint_ignore` or an entry under `ignore` in a spec accepts a finding that was not
made, although everything ran that could make it: each rule that it names was run on every sample
and came to a verdict, and the code that it stands in was reached. Where a rule was not selected,
was skipped, could not judge or needs a device that is absent, nothing is said of it.

Why it matters
--------------
The defect that it accepted is gone. What is left accepts the next one of its kind without anybody
knowing.

Bad
---
```python
import torch

class Op(torch.autograd.Function):  # gradlint: ignore[GL401] the factor is missing on purpose
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
mylib/ops.py:3:37  GL010  nothing is left to accept: GL401 wrong_gradient passes
  help       remove the comment, or GL401 from it
```

References
----------
- RUF100 of ruff: https://docs.astral.sh/ruff/rules/unused-noqa/
"""

from __future__ import annotations

from gradlint.experiments.loading.process_findings import suppression_finding
from gradlint.model.report import Finding, Location
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)


def make_finding(
    target: str, code: str, what: str, reason: str, location: Location | None, settings: Settings
) -> Finding:
    """The finding that nothing is left for ``code`` to accept.

    Args:
        target: as typed.
        code: as it is written, a code or the beginning of one.
        what: the rule, or the rules, that it stands for, in words.
        reason: that it gives; location: of it.
    """
    passes = "passes" if what.startswith("GL") else "pass"
    return suppression_finding(
        RULE,
        target,
        f"nothing is left to accept: {what} {passes}",
        f"remove {code} there, or the whole of it if nothing else is named",
        {"reason given": reason},
        location,
        settings,
    )
