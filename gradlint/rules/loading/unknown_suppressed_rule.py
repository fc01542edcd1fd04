"""Suppression of a rule that does not exist.

What it finds
-------------
A comment is meant to accept a finding and accepts none: it names no rule, or one that does not
exist, or `ignore` is mistyped.

Why it matters
--------------
Whoever wrote it believes that the finding is accepted. If it is not made today, it will be a
surprise on the day it is.

Bad
---
```python
import torch

class Op(torch.autograd.Function):  # gradlint: ignore[GL4001] the factor is missing on purpose
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
mylib/ops.py:3:37  GL012  the comment accepts nothing: no rule is called `GL4001`
  help       did you mean GL401 wrong_gradient?
```

References
----------
- RUF102 of ruff: https://docs.astral.sh/ruff/rules/invalid-rule-code/
"""

from __future__ import annotations

from gradlint.base.text import nearest
from gradlint.experiments.loading.process_findings import suppression_finding
from gradlint.model.report import Finding, Location
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import rule_names, rule_of

RULE = rule_of(__name__)

#: The form of a comment that is obeyed.
FORM = "# gradlint: ignore[GL602] the reason"


def make_finding(target: str, code: str, location: Location | None, settings: Settings) -> Finding:
    """The finding that a comment accepts nothing.

    Args:
        target: as typed.
        code: that no rule has; "" where none is named, or the form is another one.
        location: of the comment.
    """
    if not code:
        message = "the comment accepts nothing: it does not have the form that is obeyed"
        return suppression_finding(RULE, target, message, f"write {FORM}", {}, location, settings)
    return suppression_finding(
        RULE,
        target,
        f"the comment accepts nothing: no rule has the code `{code}`",
        _step(code),
        {},
        location,
        settings,
    )


def _step(code: str) -> str:
    names = rule_names()
    by_name = {name: known for known, name in names.items()}
    word = code.lower().replace("-", "_")
    meant = by_name.get(word) or next(iter(nearest(code, names)), "")
    if not meant:
        meant = by_name.get(next(iter(nearest(word, by_name)), ""), "")
    if not meant:
        return "`gradlint rules` lists all codes"
    if meant == by_name.get(word):
        return f"write its code: {meant}"
    return f"did you mean {meant} {names[meant]}?"
