"""Saved tensor mutated.

What it finds
-------------
What forward kept for backward does not stay as it was. Either backward itself writes to a saved
tensor (or to one that `ctx` holds), or an in-place operation on the output, `out.mul_(2)`, changes
what backward will read, and PyTorch's version check does not notice, because the tensor was not
kept with `save_for_backward`. Values are compared, so that writes by kernels are caught too.

Cost: 1 forward and 1 backward call in addition to the run shared with GL602.

Why it matters
--------------
A second backward through the graph gets a different gradient, and where the saved tensor is an
input, everything else that uses it sees the change. After an in-place operation on the output even
the first gradient is wrong. Nothing is printed.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(x, y)
        return y * x

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        y.mul_(1 + x)
        return grad_output * y

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
        return x.exp() * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (1 + x) * x.exp()

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, -1.5, 2.5]),)
```

How it looks
------------
```text
mylib/ops.py:13:9  GL603  backward writes to saved_tensors[1]: 3 of 3 elements changed
  13 |         y.mul_(1 + x)
     |         ^^^^^^^^^^^^^ written to here
  help       work on a copy (`.clone()`): what is saved is read again by the next backward
```

References
----------
- Saved tensors and in-place operations:
  https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks
- NVIDIA/apex#1587, unslothai/unsloth#5002
"""

from __future__ import annotations

from gradlint.experiments.baseline_comparison import Difference
from gradlint.experiments.outcomes import judged_by, skipped
from gradlint.experiments.preconditions import why_not_guarded, why_not_repeatable
from gradlint.experiments.state.guarded_run import WrittenTensor, make_guarded
from gradlint.experiments.state.inplace_after_forward import make_inplace_change
from gradlint.experiments.state.lifetimes import make_lifetime
from gradlint.experiments.state.state_findings import changed_gradient_finding
from gradlint.experiments.state.write_places import write_place
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)


def probe(subject: Subject) -> Outcome:
    """Compare what was saved with what it was, and change the output in place before backward."""
    reason = why_not_guarded(subject)
    if reason:
        return skipped(reason)
    findings = [_finding(subject, item) for item in subject.once(make_guarded).saved]
    note = why_not_repeatable(subject)
    if not note and not subject.once(make_guarded).saved:
        change = subject.once(make_inplace_change)
        if change.wrong and not change.changed:
            findings.append(_unnoticed(subject, change.wrong[0]))
    return judged_by(findings, note)


def _finding(subject: Subject, item: WrittenTensor) -> Finding:
    found = item.difference
    what = f"the saved {item.kin} `{item.name}`" if item.kin != "intermediate" else item.name
    return subject.finding(
        RULE,
        f"backward writes to {what}: {found.count} of {found.total} elements changed",
        input=item.name if item.kin == "input" else None,
        index=found.index,
        place=write_place(item.function, "backward", None, "written to here"),
        evidence=found.evidence(),
        help="work on a copy (`.clone()`): what is saved is read again by the next backward"
        + (", and the caller still uses it" if item.kin != "intermediate" else ""),
    )


def _unnoticed(subject: Subject, difference: Difference) -> Finding:
    lifetime = subject.once(make_lifetime)
    outputs = [item for item in lifetime.held if item.kin == "output"] if lifetime else []
    inside = bool(outputs) and all(item.saved_inside for item in outputs)
    return changed_gradient_finding(
        subject,
        RULE,
        difference,
        "after an in-place operation on the output, and nothing raises",
        severity="info" if inside else None,
        cause_text="backward reads the output's memory, bypassing the version check"
        + (": a Function inside saved it in a context of its own" if inside else ""),
        help="keep the output with ctx.save_for_backward(output), whose version check then raises, "
        "or return a copy of what backward needs",
    )
