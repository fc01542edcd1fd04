"""RNG differs between passes.

What it finds
-------------
A gradient that depends on random numbers drawn in backward: two backward passes of the same forward
that start from different random states give different gradients. The mask that backward draws is
not the one that forward used. Where forward draws nothing, so that backward is a random estimate by
design, the finding is a warning.

Cost: 1 backward call in addition to the run shared with GL602, and only where backward draws.

Why it matters
--------------
Under a fixed seed everything is reproducible, and the loss still falls, but the gradient belongs to
a different dropout mask.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * (torch.rand_like(x) > 0.5)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * (torch.rand_like(grad_output) > 0.5)

    @staticmethod
    def sample_inputs():
        return (torch.linspace(-2.0, 2.0, 32),)
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        mask = torch.rand_like(x) > 0.5
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, grad_output):
        (mask,) = ctx.saved_tensors
        return grad_output * mask

    @staticmethod
    def sample_inputs():
        return (torch.linspace(-2.0, 2.0, 32),)
```

How it looks
------------
```text
mylib/ops.py:10:16  GL610  the gradient for `x` changes where backward draws other random numbers
  help       save the mask, or the seed and the offset, in forward
```

References
----------
- facebookresearch/xformers#755, state-spaces/mamba#1023
"""

from __future__ import annotations

from gradlint.experiments.outcomes import skipped
from gradlint.experiments.preconditions import why_not_guarded, why_not_repeatable
from gradlint.experiments.state.guarded_run import make_guarded
from gradlint.experiments.state.repeated_calls import baseline_with
from gradlint.experiments.state.state_findings import changed_gradient_finding, raised_there_finding
from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)

_HELP = "save the mask, or the seed (and offset) it was drawn from, in forward, and use it again"


def probe(subject: Subject) -> Outcome:
    """Compare backward passes of one graph that start from different random states."""
    reason = why_not_guarded(subject) or why_not_repeatable(subject)
    if reason:
        return skipped(reason)
    guarded = subject.once(make_guarded)
    forward, backward = guarded.draws
    if not backward:
        return Outcome("pass", note="backward draws no random numbers")
    when = "where backward draws other random numbers"
    if guarded.second_error is not None:
        return skipped("a second backward of the same graph raises: see GL605")
    if guarded.other_error is not None:
        return Outcome(
            "fail", [raised_there_finding(subject, RULE, guarded.other_error, when, help=_HELP)]
        )
    if baseline_with(subject, guarded.first).differences(guarded.second or []):
        return skipped("a second backward of the same graph differs: see GL605")
    findings = [
        changed_gradient_finding(
            subject,
            RULE,
            difference,
            when,
            severity=None if forward else "warning",
            cause_text=""
            if forward
            else "forward draws no random numbers: backward is a random estimate",
            help=_HELP if forward else "document it, and let the caller pass a generator",
        )
        for difference in baseline_with(subject, guarded.first).differences(guarded.other or [])
    ]
    return Outcome("fail" if findings else "pass", findings)
