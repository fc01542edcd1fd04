"""grad_output mutated.

What it finds
-------------
A backward that writes to the gradient it receives: afterwards, the tensor that was passed in no
longer holds what it held before. Values are compared, so that kernels which bypass PyTorch's
version counters are caught too. The gradients that Functions inside the op receive are watched as
well. Where an output `f(h)` has the shape and dtype of an input `h`, the op is also used in a
residual connection: under the gradient v of `h + f(h)`, `h` must get v plus what backward returns
for it, up to rounding.

Cost: 1 forward and 3 backward calls (2 without the residual connection), shared with GL601, GL603,
GL605 and GL610.

Why it matters
--------------
The tensor does not belong to the Function. In `h + f(h)` both branches receive the same one, and
the branch that runs later gets what the first one made of it: a wrong gradient, and only there.

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
        return grad_output.mul_(x.cos())

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
mylib/ops.py:12:16  GL602  backward writes to grad_output of `output`: 3 of 3 elements changed
  12 |         return grad_output.mul_(x.cos())
     |                ^^^^^^^^^^^^^^^^^^^^^^^^^ written to here
  help       work on a copy: grad_output.clone(), or an operation that is not in place
```

References
----------
- "You should never modify grad_output in-place":
  https://docs.pytorch.org/docs/stable/notes/extending.html
- NVIDIA/apex#1430, linkedin/Liger-Kernel#272
"""

from __future__ import annotations

import torch

from gradlint.experiments.baseline_comparison import FEW, Difference, compare
from gradlint.experiments.outcomes import skipped
from gradlint.experiments.preconditions import why_not_guarded, why_not_repeatable
from gradlint.experiments.state.guarded_run import WrittenTensor, make_guarded
from gradlint.experiments.state.repeated_calls import baseline_with
from gradlint.experiments.state.residual_use import sum_of, terms_of
from gradlint.experiments.state.state_findings import raised_there_finding
from gradlint.experiments.state.write_places import write_place
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome
from gradlint.numerics.products import unit_roundoff, widened
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)

_HELP = (
    "work on a copy: grad_output.clone(), or an operation that is not in place "
    "(`.contiguous()` may return the same tensor)"
)


def probe(subject: Subject) -> Outcome:
    """Compare every gradient that backward received with its value before, also with a branch."""
    reason = why_not_guarded(subject)
    if reason:
        return skipped(reason)
    findings = [_finding(subject, item) for item in subject.once(make_guarded).cotangents]
    findings = findings or _in_residual_connection(subject)
    return Outcome("fail" if findings else "pass", findings)


def _in_residual_connection(subject: Subject) -> list[Finding]:
    """What the residual connection shows: a write that only happens where the tensor is shared."""
    raised, names = subject.once(make_guarded).residual_error, subject.once(make_guarded).added
    first = subject.problem.inputs[next(iter(names.values()))].name if names else ""
    where = f"in a residual connection, `{first} + op({first})`"
    if raised is not None:
        return [raised_there_finding(subject, RULE, raised, where, help=_HELP)]
    return [
        subject.finding(
            RULE,
            f"the gradient for `{found.name}` changes {where}",
            input=found.name,
            index=found.index,
            place=write_place(subject.op.function, "backward", None, "written to here"),
            evidence=found.evidence(),
            help=_HELP,
        )
        for found in _spoiled(subject)
    ]


def _finding(subject: Subject, item: WrittenTensor) -> Finding:
    names = item.function.__name__ if isinstance(item.function, type) else ""
    outer = any(item.name == output.name for output in subject.run.outputs)
    what = f"grad_output of `{item.name}`" if outer else f"{item.name} of {names}"
    found = item.difference
    return subject.finding(
        RULE,
        f"backward writes to {what}: {found.count} of {found.total} elements changed",
        output=item.name if outer else None,
        index=found.index,
        place=write_place(item.function, "backward", None, "written to here"),
        evidence=found.evidence(),
        help=_HELP,
    )


def _spoiled(subject: Subject) -> list[Difference]:
    """Inputs whose gradient in the residual use is not the op's own with the cotangents added.

    Nothing is compared where identical calls, or a second backward of the graph, differ: other
    rules report that.
    """
    guarded, cotangents = subject.once(make_guarded), subject.run.cotangents
    if guarded.residual is None or guarded.second is None or why_not_repeatable(subject):
        return []
    base = baseline_with(subject, guarded.first)
    if base.differences(guarded.second):
        return []
    found = []
    for position, got in enumerate(guarded.residual):
        terms = terms_of(guarded.first, cotangents, guarded.added, position)
        expected = sum_of(terms)
        allowed = base.allowed(position)
        if len(terms) > 1 and expected is not None:
            sizes = torch.stack([widened(part).abs() for part in terms]).sum(0)
            rounding = FEW * unit_roundoff(expected.dtype) * sizes
            allowed = rounding if allowed is None else allowed + rounding
        difference = compare(position, base.names[position], got, expected, allowed)
        if difference is not None:
            found.append(difference)
    return found
