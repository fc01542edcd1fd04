"""Uninitialised memory.

What it finds
-------------
Results that contain memory which was allocated and never written. With
`torch.use_deterministic_algorithms(True)` PyTorch fills what `torch.empty`, `empty_like` and
`new_empty` return with NaN (integers with their maximum); outputs and gradients must be the same as
without. Memory that an extension allocates itself (malloc, cudaMalloc) is not filled.

Cost: 1 forward and 1 backward call.

Why it matters
--------------
Fresh memory is often zero, so that tests pass; NaN appears hours later, when the memory is reused.

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
        grad = torch.empty_like(x)
        grad[:-1] = (grad_output * x.cos())[:-1]
        return grad

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, -1.5, 2.5, 1.5707963]),)
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
        grad = torch.empty_like(x)
        grad.copy_(grad_output * x.cos())
        return grad

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, -1.5, 2.5, 1.5707963]),)
```

How it looks
------------
```text
mylib/ops.py:14:16  GL607  the gradient for `x` contains uninitialised memory: 1 of 4 elements
  help       allocate with torch.zeros_like, or write every element
```

References
----------
- `fill_uninitialized_memory`: https://docs.pytorch.org/docs/stable/deterministic.html
- pytorch/FBGEMM#5754, fla-org/flash-linear-attention#892
"""

from __future__ import annotations

from gradlint.experiments.baseline_comparison import Difference
from gradlint.experiments.gradient_place import gradient_place
from gradlint.experiments.outcomes import skipped
from gradlint.experiments.preconditions import why_not_repeatable
from gradlint.experiments.state.poisoned_memory import compare_with_filled_memory
from gradlint.experiments.state.repeated_calls import NONDETERMINISTIC_NOTE, differs_on_repeat
from gradlint.experiments.state.state_findings import raised_there_finding
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)

_HELP = (
    "write every element of what `empty` returns, at every size, or allocate with `zeros` or "
    "`zeros_like`"
)


def probe(subject: Subject) -> Outcome:
    """Compare forward and gradients with those that poisoned memory gives."""
    reason = why_not_repeatable(subject)
    random = reason == NONDETERMINISTIC_NOTE  # uninitialised memory changes from call to call
    if reason and not random:
        return skipped(reason)
    raised, outputs, gradients = compare_with_filled_memory(subject)
    if random:
        outputs, gradients = ([d for d in part if d.kind == "NaN"] for part in (outputs, gradients))
    blurred = any(item.kind != "NaN" for item in (*outputs, *gradients))
    if blurred and differs_on_repeat(subject):
        return skipped(NONDETERMINISTIC_NOTE)
    if raised is not None:
        when = "where uninitialised memory holds NaN"
        return Outcome("fail", [raised_there_finding(subject, RULE, raised, when, help=_HELP)])
    findings = [_finding(subject, item, True) for item in outputs]
    findings += [_finding(subject, item, False) for item in gradients]
    if not findings and random:
        return skipped(reason)
    return Outcome("fail" if findings else "pass", findings)


def _finding(subject: Subject, found: Difference, output: bool) -> Finding:
    item = None if output else subject.problem.inputs[found.position]
    what = f"`{found.name}`" if item is None else f"the gradient for `{item.name}`"
    return subject.finding(
        RULE,
        f"{what} contains uninitialised memory: {found.count} of {found.total} elements",
        input=None if item is None else item.name,
        output=found.name if output else None,
        index=found.index,
        place=None if item is None else gradient_place(subject, item),
        evidence=found.evidence(),
        help=_HELP,
    )
