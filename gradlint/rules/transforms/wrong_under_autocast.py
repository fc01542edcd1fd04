"""Wrong under autocast.

What it finds
-------------
Forward runs under ``torch.autocast`` in bfloat16 and backward outside it, as in a training loop,
and backward raises, or returns gradients that differ from those without autocast by more than
bfloat16 explains. What bfloat16 explains is measured: the gradient in float32 at inputs rounded to
bfloat16. The rule runs in float32, which autocast casts from. A forward that refuses autocast is a
note, and so is a backward that raises where the op uses neither decorator of ``torch.amp``: it was
not written for autocast. Cost: 3 forward and 3 backward calls in float32; one of each less where
autocast changes no gradient.

Why it matters
--------------
Inside forward, matrix products return bfloat16 while ctx saves float32. In backward, where autocast
is off, the two meet: an exception in the first training step, or a cast that loses precision.
``custom_fwd`` and ``custom_bwd`` belong together: one alone does half the job.

Bad
---
```python
import torch
from torch.amp import custom_fwd

class Op(torch.autograd.Function):
    @staticmethod
    @custom_fwd(device_type="cpu")
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight.mT, x.mT @ grad_output

    @staticmethod
    def sample_inputs():
        generator = torch.Generator().manual_seed(0)
        return torch.randn(4, 3, generator=generator), torch.randn(3, 5, generator=generator)
```

Good
----
```python
import torch
from torch.amp import custom_bwd, custom_fwd

class Op(torch.autograd.Function):
    @staticmethod
    @custom_fwd(device_type="cpu")
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    @custom_bwd(device_type="cpu")
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight.mT, x.mT @ grad_output

    @staticmethod
    def sample_inputs():
        generator = torch.Generator().manual_seed(0)
        return torch.randn(4, 3, generator=generator), torch.randn(3, 5, generator=generator)
```

How it looks
------------
```text
mylib/ops.py:12:5  GL904  backward raises after a forward under autocast: RuntimeError: expected …
  12 |     def backward(ctx, grad_output):
  help       decorate forward with custom_fwd and backward with custom_bwd (torch.amp) …
```

References
----------
- Custom autograd functions and autocast: https://docs.pytorch.org/docs/stable/notes/amp_examples.html
- Reports: NVIDIA/apex#1188, linkedin/Liger-Kernel#1283
"""

from __future__ import annotations

import math

from gradlint.base.text import error_line
from gradlint.experiments.gradient_place import gradient_place
from gradlint.experiments.outcomes import skipped
from gradlint.experiments.preconditions import why_not_finite
from gradlint.experiments.returned_gradients import backward_place
from gradlint.experiments.subject import Subject
from gradlint.experiments.transforms.autocast import (
    AutocastRun,
    in_float32,
    under_autocast,
    written_for_autocast,
)
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)

_HELP = (
    "decorate forward with custom_fwd and backward with custom_bwd (torch.amp), both with the "
    "device_type; or cast in backward to the dtype of the saved tensors, and return each gradient "
    "in the dtype of its input"
)


def probe(subject: Subject) -> Outcome:
    """Compare gradients after a forward under autocast with those without."""
    reason = why_not_finite(subject)
    if reason or not subject.run.cotangents:
        return skipped(reason or "no output is differentiable")
    problem = in_float32(subject)
    if isinstance(problem, str):
        return skipped(problem)
    found = under_autocast(subject, problem)
    if problem is not subject.problem:
        subject.problem.forward_calls += problem.forward_calls
        subject.problem.backward_calls += problem.backward_calls
    if found.reason:
        return skipped(found.reason)
    if found.refused is not None:
        return Outcome("pass", [_refused(subject, found)])
    if found.raised is not None:
        finding = _raised(subject, found)
        return Outcome("pass" if finding.severity == "info" else "fail", [finding])
    findings = [_wrong(subject, found, position) for position in found.wrong]
    note = "" if found.changed else "autocast changes no output"
    return Outcome("fail" if findings else "pass", findings, note=note)


def _refused(subject: Subject, found: AutocastRun) -> Finding:
    assert found.refused is not None
    line = error_line(found.refused.error)
    return subject.finding(
        RULE,
        f"forward raises under autocast: {line}",
        severity="info",
        evidence={"error": line},
        help="custom_fwd(cast_inputs=torch.float32) runs forward without autocast",
    )


def _raised(subject: Subject, found: AutocastRun) -> Finding:
    assert found.raised is not None
    line = error_line(found.raised.error)
    own = subject.run.own
    return subject.finding(
        RULE,
        f"backward raises after a forward under autocast: {line}",
        severity=None if written_for_autocast(subject) else "info",
        place=backward_place(own) if own is not None else None,
        evidence={"error": line, "output dtypes": found.outputs},
        grounds=subject.grounds(where="transform", silent=False),
        help=_HELP,
    )


def _wrong(subject: Subject, found: AutocastRun, position: int) -> Finding:
    item = subject.problem.inputs[position]
    error, allowed, index, returned, expected = found.wrong[position]
    gap = abs(returned - expected)
    return subject.finding(
        RULE,
        f"wrong gradient for `{item.name}` after a forward under autocast: off by {error:.1g} of "
        f"its size, where bfloat16 explains {allowed:.1g}",
        input=item.name,
        index=index,
        place=gradient_place(subject, item),
        evidence={
            "elements": [
                {
                    "index": index,
                    "returned": returned,
                    "expected": expected,
                    "error": gap if math.isfinite(gap) else math.inf,
                }
            ],
            "relative_error": error,
            "allowed": allowed,
            "output dtypes": found.outputs,
        },
        help=_HELP,
    )
