"""Overflow in an intermediate.

What it finds
-------------
At magnitudes up to 150, forward returns NaN or infinities in float32 (or in the sample's own lower
dtype), although the value is well inside the range of that dtype: the same op returns it in float64
at exactly the same inputs. An intermediate result overflowed, or vanished before a logarithm or a
division. Outputs of which other elements are beyond the dtype's range in float64, too, are left
out: inputs this large are not meant for the op. So are elements whose float64 value changes 1000
times more than the inputs where these move by one float32 rounding, and otherwise than the gradient
says: an iteration does not converge there. If the inputs were guessed, it is information: the op
may not be meant for such magnitudes, and where it depends on the signs of other inputs or
constants, such signs may be required; so it is where all given values of the input have one sign
and are ten times smaller, as a rate or an exponent is; and so it is where forward iterates much
longer there than at the sample, from a start too far away. Where the op refuses float64, NaN counts
if it does not occur at smaller inputs. Cost: 3 forward calls for the first input, 2 for each
further one; up to 6 more where it overflows, and up to 56 where inputs were guessed.

Why it matters
--------------
Logits of 90 do occur, and exp(90) does not fit into a float32. The loss becomes NaN long after the
tests, whose inputs were standard normal.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        e = x.exp()
        y = e / e.sum(-1, keepdim=True)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        y, = ctx.saved_tensors
        inner = (grad_output * y).sum(-1, keepdim=True)
        return y * (grad_output - inner)

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
        e = (x - x.amax(-1, keepdim=True)).exp()
        y = e / e.sum(-1, keepdim=True)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        y, = ctx.saved_tensors
        inner = (grad_output * y).sum(-1, keepdim=True)
        return y * (grad_output - inner)

    @staticmethod
    def sample_inputs():
        return torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
```

How it looks
------------
```text
mylib/ops.py:4:1  GL303  `output` is NaN in float32 at `x` up to 150, where its value is 0.0421
  help       subtract the maximum before exp, or use torch.logsumexp, softmax, softplus …
```

References
----------
- Blanchard, Higham & Higham, Accurately computing the log-sum-exp and softmax functions,
  IMA J. Numer. Anal. 41 (2021)
"""

from __future__ import annotations

from typing import Literal

from gradlint.experiments.finite.overflow import Overflow, low_problem, overflows
from gradlint.experiments.outcomes import skipped
from gradlint.experiments.preconditions import why_not_finite
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)

#: Times the largest given value beyond which values are far from what an op is meant for, if they
#: all have one sign (heuristic: what has a unit seldom spans more than one power of ten in a test).
FAR = 10.0


def probe(subject: Subject) -> Outcome:
    """Run forward at large inputs in a low dtype and in float64."""
    reason = why_not_finite(subject)
    if reason:
        return skipped(reason)
    low = low_problem(subject)
    if isinstance(low, str):
        return skipped(low)
    findings = [_finding(subject, found) for found in overflows(subject, low)]
    return Outcome("fail" if findings else "pass", findings)


def _explained(
    subject: Subject, found: Overflow
) -> Literal["signs", "solver", "undefined", "far"] | None:
    if found.iterates:
        return "solver"
    if found.depends_on_signs:
        return "signs"
    if subject.sample.origin == "inferred":
        return "undefined"
    return "far" if _far_from_one_sign(subject, found) else None


def _far_from_one_sign(subject: Subject, found: Overflow) -> bool:
    """Whether all given values of the input have one sign, and the largest at which it overflows
    is far beyond them: a rate, a width, an exponent, and no logit."""
    given = subject.problem.values()[found.position].detach()
    of_one_sign = bool((given >= 0).all()) or bool((given <= 0).all())
    return of_one_sign and 0 < FAR * float(given.abs().max()) < found.largest


def _finding(subject: Subject, found: Overflow) -> Finding:
    item = subject.problem.inputs[found.position]
    dtype = str(found.dtype).removeprefix("torch.")
    kind = "NaN" if found.returned != found.returned else "infinite"
    at = f"`{found.output}` is {kind} in {dtype} at `{item.name}` up to {found.largest:g}"
    if found.value is None:
        text = f"{at}, and finite at smaller values"
    else:
        text = f"{at}, where its value is {found.value:.3g}"
    evidence = {
        "elements": [
            {
                "index": found.index,
                "returned": found.returned,
                "float64": found.value,
                "error": abs(found.returned) if kind == "infinite" else found.returned,
            }
        ],
        "not_finite": found.count,
        "largest input": found.largest,
    }
    return subject.finding(
        RULE,
        text,
        input=item.name,
        output=found.output,
        index=found.index,
        evidence=evidence,
        grounds=subject.grounds(explained=_explained(subject, found)),
        help="an intermediate result overflows or vanishes: subtract the maximum before exp, "
        "divide before squaring, or use torch.logsumexp, log_softmax, softplus, expm1, hypot …",
    )
