"""Second derivative silently lost.

What it finds
-------------
The gradient depends on an input, or on the incoming gradient, but is not connected to it in the
graph: second derivatives are zero or missing, and nothing raises.

Why it matters
--------------
A gradient penalty through such an operator silently has no effect on the parameters. The usual
causes are `no_grad`, `.detach()`, `.data` or NumPy in backward.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x.detach() ** 2

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
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x**2

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, -1.5, 2.5]),)
```

How it looks
------------
```text
mylib/ops.py:12:16  GL502 warning  gradient right (to 3e-10); second derivative with respect to `x`
  is silently zero
  12 |         return grad_output * 3 * x.detach() ** 2
     |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ returned for `x`
     |                                  -------- see here
  measured slope  65.711
  claimed slope   0
  help            compute in backward from ctx.saved_tensors without no_grad, .detach() or .data
```

References
----------
- Double backward with custom functions:
  https://docs.pytorch.org/tutorials/intermediate/custom_function_double_backward_tutorial.html
"""

from __future__ import annotations

from gradlint.experiments.order.saved_without_graph import saved_without_graph
from gradlint.experiments.order.second_order import (
    FIRST_ORDER_ONLY,
    differentiate_twice,
    first_order_words,
    is_lost,
    second_order_place,
    target_at_fault,
)
from gradlint.experiments.outcomes import skipped
from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome
from gradlint.numerics.verdict import DIFFERS
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)

HELP = (
    "the gradient depends on it but is not connected to it in the graph: compute in backward from "
    "ctx.saved_tensors without no_grad, .detach() or .data; or mark backward with "
    "@once_differentiable, which raises instead of returning zeros"
)


def probe(subject: Subject) -> Outcome:
    """See whether a gradient that depends on something carries a graph to it."""
    attempt = subject.once(differentiate_twice)
    if attempt.map is None or attempt.decision is None:
        return skipped(attempt.reason)
    judgement = attempt.decision.judgement
    lost = [
        (place, item)
        for place, item in enumerate(judgement.inputs)
        if attempt.decision.verdicts[place] == DIFFERS and is_lost(attempt, item.index)
    ]
    if not lost:
        return Outcome("pass")
    names = ", ".join(f"`{attempt.map.names[item.index]}`" for _, item in lost)
    worst = max((item.worst for _, item in lost), key=lambda pair: pair.error)
    place, first = lost[0]
    name = attempt.map.names[first.index]
    cause = saved_without_graph(subject, first.index)
    finding = subject.finding(
        RULE,
        f"{first_order_words(subject)}second derivative with respect to {names} is silently zero",
        cause=cause.slug if cause else None,
        cause_text=cause.text if cause else "",
        input=name,
        place=second_order_place(subject, target_at_fault(attempt, place), name),
        evidence={"measured_slope": worst.measured, "claimed_slope": worst.claimed},
        help=(cause.help if cause else HELP) + FIRST_ORDER_ONLY,
    )
    return Outcome("fail", [finding])
