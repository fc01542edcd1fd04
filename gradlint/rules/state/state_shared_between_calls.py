"""State shared between calls.

What it finds
-------------
Calls that disturb each other. Forward is called at the sample and then, before the first call's
backward, with other values: the first call's output and gradient must not change. Then the second
call's backward runs, and the first gradient must still not change. State on a class, a module or in
a global instead of `ctx`, and buffers that are handed out twice, fail here.

Cost: 2 forward and 2 backward calls.

Why it matters
--------------
An operator that is used twice in a network is called in exactly this order. Each call alone is
right, so that no gradient check sees the fault.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        Op.x = x.detach().clone()
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * Op.x.cos()

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
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.cos()

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, -1.5, 2.5]),)
```

How it looks
------------
```text
mylib/ops.py:11:16  GL608  the gradient for `x` changes after a later call of the op
  help       keep what backward needs with ctx.save_for_backward (plain values on `ctx`) …
```

References
----------
- Extending torch.autograd: https://docs.pytorch.org/docs/stable/notes/extending.html
- BobMcDear/attorch, asappresearch/sru#171
"""

from __future__ import annotations

from gradlint.experiments.outcomes import skipped
from gradlint.experiments.preconditions import why_not_repeatable
from gradlint.experiments.state.interleaved_calls import interleave
from gradlint.experiments.state.repeated_calls import NONDETERMINISTIC_NOTE, differs_on_repeat
from gradlint.experiments.state.state_findings import changed_gradient_finding, raised_there_finding
from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)

_HELP = (
    "keep what backward needs with ctx.save_for_backward (plain values on `ctx`), not on a class, "
    "a module or in a global, and return new memory from each call"
)


def probe(subject: Subject) -> Outcome:
    """Call the op with other values between a forward and its backward."""
    reason = why_not_repeatable(subject)
    if reason:
        return skipped(reason)
    seen = interleave(subject)
    when = "after a later call of the op"
    if seen is None:
        return skipped("the op accepts no other values than the sample's")
    if seen.raised is not None:
        return Outcome("fail", [raised_there_finding(subject, RULE, seen.raised, when, help=_HELP)])
    findings = [
        subject.finding(
            RULE,
            f"`{item.name}` is overwritten by a later call of the op: {item.count} of {item.total} "
            "elements",
            output=item.name,
            index=item.index,
            evidence=item.evidence(),
            help=_HELP,
        )
        for item in seen.outputs
    ]
    if not findings:
        findings = [
            changed_gradient_finding(subject, RULE, item, when, help=_HELP)
            for item in seen.gradients
        ]
    if not findings:
        findings = [
            changed_gradient_finding(
                subject, RULE, item, "after the backward of another call", help=_HELP
            )
            for item in seen.overwritten
        ]
    if findings and differs_on_repeat(subject):
        return skipped(NONDETERMINISTIC_NOTE)
    return Outcome("fail" if findings else "pass", findings)
