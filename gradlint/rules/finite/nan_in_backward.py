"""NaN or Inf in backward.

What it finds
-------------
A gradient holds NaN or Inf where forward is finite and, as finite differences show, has a finite
derivative, two-sided or one-sided. Where the derivative itself is infinite (a root at zero),
nothing is reported.

The rule looks at the sample and at extreme values made from it, inside its domain where that is
known: all zeros, unless the documentation excludes them ("any q but 0"); all elements equal; single
elements that are zero, equal to each other, or equal to a number in the op's arguments or source;
magnitudes up to 10000 (in float32 1000), and single inputs of these whose gradient is not finite
with the others as they are; the smallest normal numbers; the identity in place of
orthogonal matrices or unit quaternions, unless the function has a kink there; and rows of boolean
arguments that are all False or all True. Extremes at which forward is not finite are left out, and
so is, in 16 bits, what is finite in float32 at the same large values because that keeps more digits
of them. What is seen only where forward divides by an input that is zero is information, and so is
what needs a zero in a parameter of a module that starts with values of one sign: data are zero now
and then, a trained parameter is not. Likewise what needs large values in the parameters of a
module, and not in its data, what autograd through forward's own operations does not get finite at
the same element either, and what needs elements of one input that lie hundreds apart: a formula
that takes the largest element off first is finite wherever scores are large and differ by less.
Cost: up to 8 forward and 8 backward calls; more where something is found.

Why it matters
--------------
Forward looks fine, and the loss turns NaN one step later. It happens at single points that random
inputs miss: exact zeros, ties, saturated or fully masked rows.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        norm = x.square().sum().sqrt()
        ctx.save_for_backward(x, norm)
        return norm.square()

    @staticmethod
    def backward(ctx, grad_output):
        x, norm = ctx.saved_tensors
        return grad_output * 2 * norm * (x / norm)

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.0, 0.0, 0.0]),)
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square().sum()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.0, 0.0, 0.0]),)
```

How it looks
------------
```text
mylib/ops.py:13:16  GL302  gradient for `x` is NaN at [0] (3 of 3 elements), where the function …
  13 |         return grad_output * 2 * norm * (x / norm)
     |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ returned for `x`
  where       index [0]
  measured    worst elements
              index  returned      measured  error
              [0]         nan  -3.66245e-07    nan
  not finite  3
  x there     0.0
  help        backward divides by, takes the logarithm or root of, or overflows at a value that
              vanishes or saturates here: guard it, or use a formula without it
```

References
----------
- The `where` trap: pytorch/pytorch#68425, #52248
- Reports: rusty1s/pytorch_scatter#189, facebookresearch/pytorch3d#561
"""

from __future__ import annotations

import torch

from gradlint.experiments.finite.nonfinite_gradients import at_extremes, at_the_sample
from gradlint.experiments.finiteness import constant_infinities, inputs_finite, values_of
from gradlint.experiments.outcomes import judged_by, skipped
from gradlint.experiments.preconditions import why_not_run
from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)


def probe(subject: Subject) -> Outcome:
    """Measure the function wherever a gradient is not finite, at the sample and at extremes."""
    run = subject.run
    if run.gradients is None:
        return skipped(why_not_run(subject) or "nothing ran")
    if not inputs_finite(subject) and not _takes_what_is_missing(subject):
        return skipped("an input is not finite")
    if _not_finite(run.gradients) and not _forward_finite(subject):
        return skipped("forward is not finite: see GL301")
    findings, notes = at_the_sample(subject, RULE)
    more, said = at_extremes(subject, RULE, {finding.input or "" for finding in findings})
    findings += more
    return judged_by(findings, "; ".join(notes + said))


def _takes_what_is_missing(subject: Subject) -> bool:
    """Whether only constants hold NaN or Inf, and forward is finite all the same: it leaves out
    what they mark, and so must backward."""
    values = [values_of(value) for value in subject.problem.values()]
    outputs = [values_of(output.value) for output in subject.run.outputs if output.differentiable]
    return all(v is None or bool(v.isfinite().all()) for v in (*values, *outputs))


def _not_finite(gradients: list[torch.Tensor | None]) -> bool:
    found = (None if gradient is None else values_of(gradient) for gradient in gradients)
    return any(value is not None and not bool(value.isfinite().all()) for value in found)


def _forward_finite(subject: Subject) -> bool:
    """Whether outputs hold no NaN, and no infinity but those that are there on purpose, beside
    finite values."""
    for output in subject.run.outputs:
        value = values_of(output.value) if output.differentiable else None
        if value is None or bool(value.isfinite().all()):
            continue
        if not bool(value.isfinite().any()):
            return False
        constant = constant_infinities(subject, output)
        if constant is None or bool((~value.isfinite() & ~constant).any()):
            return False
    return True
