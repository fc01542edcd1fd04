"""Wrong for zero-dimensional tensors.

What it finds
-------------
An elementwise operator whose forward accepts tensors without dimensions (scalar tensors) and whose
backward raises for them, or returns a wrong gradient. Where backward raises at any number of axes
other than the sample's, nothing is reported.

Cost: 3 forward calls and 1 backward call; 1 forward call where forward refuses.

Why it matters
--------------
Losses, temperatures and learned scales are tensors without dimensions, and the same elementwise
operators are applied to them. `len(x)`, `x.shape[0]` and `x[0]` raise for them, in backward only.

Bad
---
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
        return torch.cat([grad_output[k : k + 1] * x[k : k + 1].cos() for k in range(len(x))])

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
mylib/ops.py:12:79  GL707 info  backward raises TypeError where every tensor has no dimensions
  12 |         return torch.cat([… for k in range(len(x))])
     |                                            ^^^^^^ raised here
  cause      TypeError: len() of a 0-d tensor
  help       write backward without axes, or refuse such tensors in forward
```

References
----------
- Tensors without dimensions: https://docs.pytorch.org/docs/stable/tensors.html
"""

from __future__ import annotations

from gradlint.experiments.judge_at_other_inputs import (
    RAISED,
    REFUSED,
    RIGHT,
    affords_another,
    judge_at_other_inputs,
)
from gradlint.experiments.layout.independent_axes import is_elementwise, with_other_rank
from gradlint.experiments.layout.other_sizes import FAULTS
from gradlint.experiments.outcomes import any_defect, inconclusive, skipped
from gradlint.experiments.preconditions import why_not_resizable
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.findings_elsewhere import findings_elsewhere
from gradlint.inputs.resized import tensors_of, without_dimensions
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)

WHERE = "every tensor has no dimensions"

HELP = (
    "write backward without len(), axes and indices, which tensors without dimensions don't have,"
    " or refuse these in forward"
)


def probe(subject: Subject) -> Outcome:
    """Judge the op with every tensor reduced to one without dimensions."""
    reason = why_not_resizable(subject)
    if reason:
        return skipped(reason)
    if all(tensor.dim() == 0 for tensor in tensors_of(subject.sample)):
        return skipped("every tensor of the sample has no dimensions")
    if not affords_another(subject):
        return skipped(f"left out: beyond --max-calls {subject.plan.budget}")
    seen = judge_at_other_inputs(subject, without_dimensions(subject.sample))
    if seen.verdict == REFUSED:
        return skipped("forward refuses tensors without dimensions")
    if seen.verdict in FAULTS:
        if not is_elementwise(subject):
            return skipped("not elementwise: it need not work without axes")
        if (
            seen.verdict == RAISED
            and judge_at_other_inputs(subject, with_other_rank(subject)).verdict == RAISED
        ):
            note = "backward accepts no other number of axes than the sample's"
            return skipped(note)
        findings = findings_elsewhere(
            subject, RULE, seen, WHERE, cause="no-dimensions", help=HELP, kind="no-dimensions"
        )
        if any_defect(findings):
            return Outcome("fail", findings)
        return Outcome("pass" if findings else "inconclusive", findings)
    if seen.verdict != RIGHT:
        return inconclusive("inconclusive without dimensions")
    return Outcome("pass")
