"""Once differentiable only.

What it finds
-------------
The operator explicitly refuses to be differentiated twice: its backward is marked with
`@once_differentiable`, or asking for a second derivative raises an error that says so.

Why it matters
--------------
This is a note, not a fault: refusing is the right way to promise first order only. It tells users
of gradient penalties and Hessians that they can't use this operator.

Bad
---
```python
import torch
from torch.autograd.function import once_differentiable

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, -1.5, 2.5]),)
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, -1.5, 2.5]),)
```

How it looks
------------
```text
mylib/ops.py:11:5  GL503  second derivatives are refused
  help       nothing to do if only first-order gradients are promised
```

References
----------
- `once_differentiable`: https://docs.pytorch.org/docs/stable/notes/extending.html
"""

from __future__ import annotations

from gradlint.base.text import error_text
from gradlint.experiments.order.second_order import differentiate_twice
from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of
from gradlint.targets import source

RULE = rule_of(__name__)


def probe(subject: Subject) -> Outcome:
    """See whether the op refuses explicitly to be differentiated twice."""
    attempt = subject.once(differentiate_twice)
    if attempt.error is None or not attempt.refused:
        return Outcome("skipped" if attempt.map is None else "pass", note=attempt.reason)
    function = subject.op.function
    finding = subject.finding(
        RULE,
        "second derivatives are refused",
        place=source.method(function, "backward") if function else None,
        evidence={"original": error_text(attempt.error.error)},
        help="nothing to do if only first-order gradients are promised; say so in the "
        "documentation",
    )
    return Outcome("pass", [finding])
