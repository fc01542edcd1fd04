"""Second backward differs.

What it finds
-------------
Two backward passes through one graph (`retain_graph=True`), with the same incoming gradient and the
same random numbers, give different gradients. Where the second one raises instead, because backward
has used up what forward kept, the finding is a warning.

Cost: 1 forward and 2 backward calls, in the run shared with GL601, GL602, GL603 and GL610.

Why it matters
--------------
Graphs are kept for several losses, for Jacobians row by row, for gradient penalties and for
`torch.autograd.functional`. A backward that changes its own state is right only once.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x.sin() * scale

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        scale, ctx.scale = ctx.scale, 1.0
        return grad_output * x.cos() * scale, None

    @staticmethod
    def sample_inputs():
        return torch.tensor([0.5, -1.5, 2.5]), 3.0
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x.sin() * scale

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.cos() * ctx.scale, None

    @staticmethod
    def sample_inputs():
        return torch.tensor([0.5, -1.5, 2.5]), 3.0
```

How it looks
------------
```text
mylib/ops.py:14:16  GL605  the gradient for `x` changes in a second backward of the same graph
  help       do not change `ctx` or what it saved: backward may run again
```

References
----------
- `retain_graph`: https://docs.pytorch.org/docs/stable/generated/torch.autograd.backward.html
- bitsandbytes-foundation/bitsandbytes#2034
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

_HELP = "do not change `ctx` or what it saved: backward may run again"


def probe(subject: Subject) -> Outcome:
    """Compare the gradients of two backward passes through one graph."""
    reason = why_not_guarded(subject) or why_not_repeatable(subject)
    if reason:
        return skipped(reason)
    guarded = subject.once(make_guarded)
    when = "in a second backward of the same graph"
    if guarded.second_error is not None:
        finding = raised_there_finding(
            subject,
            RULE,
            guarded.second_error,
            when,
            severity="warning",
            help=f"{_HELP}, so keep what it needs",
        )
        return Outcome("fail", [finding])
    second = guarded.second
    assert second is not None
    wrong = baseline_with(subject, guarded.first).differences(second)
    written = bool(guarded.saved)
    findings = [
        changed_gradient_finding(
            subject,
            RULE,
            difference,
            when,
            cause="saved-tensor-mutated" if written else None,
            cause_text="backward writes to what was saved (GL603)" if written else "",
            help=_HELP,
        )
        for difference in wrong
    ]
    return Outcome("fail" if findings else "pass", findings)
