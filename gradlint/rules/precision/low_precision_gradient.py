"""Low-precision gradient worse than its dtype allows.

What it finds
-------------
In float32, bfloat16 or float16 the gradient that backward returns is farther from the one in
float64 than rounding explains. The same op runs in float64 at the same values, where its gradient
is right, and the two are compared element by element. What rounding explains is found by repeating
the float64 computation with the rounding of the low dtype emulated: ill-conditioned, saturating and
kinked functions get the tolerance they need. Run with ``--dtype float32,bfloat16``. In float64 a
note says where outputs or gradients have only float32 precision.

Two sizes of the sample are made 64 times as long (at least 1024) in turn: the relative error must
not grow with them, as it does where a sum is kept in a low dtype. What autograd loses through
forward's own operations in that dtype (a recurrence kept in bfloat16) is no fault of backward. Cost
in addition to the comparison: up to 12 forward and 9 backward calls below float64, and about 20
more before anything is said.

Why it matters
--------------
Tests in float64 pass, but training runs in another dtype. A cast to float16 for speed or a sum that
accumulates in bfloat16 costs digits that the optimizer needs, and small gradients vanish.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y if x.dtype == torch.float64 else y.half())
        return y

    @staticmethod
    def backward(ctx, grad_output):
        y, = ctx.saved_tensors
        return grad_output * y.to(grad_output.dtype)

    @staticmethod
    def sample_inputs():
        return torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        y, = ctx.saved_tensors
        return grad_output * y

    @staticmethod
    def sample_inputs():
        return torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
```

How it looks
------------
```text
mylib/ops.py:13:16  GL801  gradient for `x` is worse than float32 allows
  13 |         return grad_output * y.to(grad_output.dtype)
     |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ returned for `x`
  cause      low-precision: right to 5e-04 only, the precision of float16
             index      returned      float64       error  ulps
             [1, 3]    +0.812041    +0.812304     2.6e-04  4413
  help       keep what is saved and computed in float32: no .half() or autocast on the way
```

References
----------
- Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed. (2002), §2 and §4
- Denis, de Oliveira Castro & Petit, Verificarlo: checking floating point accuracy through Monte
  Carlo arithmetic, ARITH 2016
"""

from __future__ import annotations

from gradlint.experiments.gradient_place import gradient_place, returned_expression
from gradlint.experiments.judged_dtype import outputs_in_float32
from gradlint.experiments.outcomes import skipped
from gradlint.experiments.precision.against_float64 import (
    cause_of_difference,
    compare_with_float64,
    evidence_of_difference,
    gradients_in_float32,
    low_precision_inputs,
    right_in_float64,
)
from gradlint.experiments.precision.error_growth import growing_errors
from gradlint.experiments.preconditions import why_not_finite
from gradlint.experiments.subject import Subject
from gradlint.model.report import CheckVerdict, Finding
from gradlint.model.rule import Outcome
from gradlint.numerics.twin import TwinJudgement
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)


def probe(subject: Subject) -> Outcome:
    """Compare gradients in low precision with those in float64."""
    reason = why_not_finite(subject)
    if reason:
        return skipped(reason)
    low = low_precision_inputs(subject)
    if not low:
        findings = _float32_inside(subject)
        note = "in float64; lower precision needs --dtype float32,bfloat16"
        return Outcome("pass", findings) if findings else skipped(note)
    compared, reason = compare_with_float64(subject, low)
    if reason:
        return skipped(reason)
    names = [item.name for item in subject.problem.inputs]
    findings, notes, resolutions = [], [], []
    unsure = False
    for found in compared:
        if found.verdict == "differs":
            findings.append(_finding(subject, found))
        elif found.verdict == "unsure":
            unsure = True
            notes.append(f"could not tell for {names[found.index]}: {found.reason}")
        else:
            resolutions.append(found.resolution)
    near = [item.index for item in compared if item.verdict != "differs"]
    findings += _growing(subject, near, notes)
    verdict: CheckVerdict = "fail" if findings else "inconclusive" if unsure else "pass"
    return Outcome(verdict, findings, max(resolutions, default=None), "; ".join(notes))


def _growing(subject: Subject, positions: list[int], notes: list[str]) -> list[Finding]:
    """Gradients whose error grows with the length of a sum; ``notes`` gets what is left out."""
    findings = []
    for found in growing_errors(subject, positions, notes):
        item = subject.problem.inputs[found.position]
        dtype = str(item.value.dtype).removeprefix("torch.")
        findings.append(
            subject.finding(
                RULE,
                f"gradient for `{item.name}` loses digits as sums grow: relative error "
                f"{found.after:.0e} at size {found.longer}, {found.before:.0e} at {found.size}",
                severity="warning",
                cause="low-precision",
                cause_text=f"low-precision: a sum is kept in {dtype}",
                input=item.name,
                place=gradient_place(subject, item),
                evidence={
                    "relative_error": found.after,
                    "at the sample": found.before,
                    "allowed": found.allowed,
                    "size": found.longer,
                },
                help="accumulate in float32 (sum(dtype=torch.float32), a float32 buffer or "
                "accumulator) and cast the result",
            )
        )
    return findings


def _float32_inside(subject: Subject) -> list[Finding]:
    """What an op that takes float64 rounds to float32: outputs, or gradients alone."""
    reason = "low-precision: every value of {} has only float32 precision"
    help_text = (
        "keep everything in the dtype of the inputs: no .float() or float32 buffer on the way"
    )
    outputs = outputs_in_float32(subject.problem)
    if outputs:
        return [
            subject.finding(
                RULE,
                "float64 is accepted, but float32 is computed: judged with float32 precision",
                severity="info",
                cause="low-precision",
                cause_text=reason.format(", ".join(f"`{name}`" for name in outputs)),
                output=outputs[0],
                help=help_text + "; or refuse float64",
            )
        ]
    return [
        subject.finding(
            RULE,
            f"gradient for `{item.name}` has only the precision of float32 (6e-08)",
            severity="info",
            cause="low-precision",
            cause_text=reason.format(f"the gradient of `{item.name}`"),
            input=item.name,
            place=gradient_place(subject, item),
            help=help_text + " through backward",
        )
        for item in gradients_in_float32(subject)
    ]


def _finding(subject: Subject, found: TwinJudgement) -> Finding:
    item = subject.problem.inputs[found.index]
    dtype = str(item.value.dtype).removeprefix("torch.")
    cause = cause_of_difference(found, [i.name for i in subject.problem.inputs])
    numbers, worst = evidence_of_difference(found)
    span = gradient_place(subject, item)
    help_text = cause.help if cause else right_in_float64(item.name)
    return subject.finding(
        RULE,
        f"gradient for `{item.name}` is worse than {dtype} allows",
        severity="warning" if cause is not None and cause.slug == "low-precision" else "error",
        cause=cause.slug if cause else None,
        cause_text=cause.text if cause else "",
        input=item.name,
        index=worst,
        place=span,
        evidence=numbers,
        help=help_text.replace("{expression}", returned_expression(span) or "…"),
    )
