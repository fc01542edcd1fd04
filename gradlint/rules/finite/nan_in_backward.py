"""NaN or Inf in backward.

What it finds
-------------
A gradient holds NaN or Inf where forward is finite and has a finite derivative, two-sided or
one-sided, which finite differences show. Where the derivative itself is infinite (a root at zero)
there is nothing to find.

Why it matters
--------------
Forward looks well, and the loss turns NaN one step later. It happens at single points that random
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
             index      returned     measured       error
             [0]             nan    +0.000000         nan
  help       backward divides by, or takes the logarithm of, something that vanishes here
```

References
----------
- The `where` trap: pytorch/pytorch#68425, #52248
- Reports: rusty1s/pytorch_scatter#189, facebookresearch/pytorch3d#561
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradlint.rules._rule import Outcome, Rule

if TYPE_CHECKING:
    import torch

    from gradlint.report import Finding
    from gradlint.rules._subject import Subject
    from gradlint.rules.finite._one_sided import OneSided

#: Elements at which the function is measured, of those whose gradient is not finite.
LOOKED_AT = 8


def probe(subject: Subject) -> Outcome:
    """Measure the function wherever a gradient is not finite."""
    import torch

    from gradlint.rules.finite._finite import inputs_finite, values_of
    from gradlint.rules.finite._one_sided import one_sided

    run = subject.run
    if run.gradients is None:
        return Outcome("skipped", note=f"{run.error.phase} raised" if run.error else "nothing ran")
    if not inputs_finite(subject):
        return Outcome("skipped", note="an input is not finite")
    findings = []
    notes = []
    measure = None
    for index, gradient in enumerate(run.gradients):
        dense = None if gradient is None else values_of(gradient)
        if dense is None or bool(dense.isfinite().all()):
            continue
        if not _forward_finite(subject):
            return Outcome("skipped", note="forward is not finite: see GL301")
        measure = measure or one_sided(subject)
        bad = (~torch.isfinite(dense)).nonzero().tolist()
        stride = max(1, len(bad) // LOOKED_AT)
        name = subject.problem.inputs[index].name
        for where in bad[::stride][:LOOKED_AT]:
            seen = measure(index, where)
            if seen.finite_for(complex(dense[tuple(where)].item())):
                findings.append(_finding(subject, index, dense, where, len(bad), seen))
                break
        else:
            notes.append(f"gradient for {name} is not finite where its derivative is not either")
    return Outcome("fail" if findings else "pass", findings, note="; ".join(notes))


def _forward_finite(subject: Subject) -> bool:
    """Whether outputs hold no NaN, and no infinity but those that are there on purpose."""
    from gradlint.rules.finite._finite import constant_infinities, values_of

    for output in subject.run.outputs:
        value = values_of(output.value) if output.differentiable else None
        if value is None or bool(value.isfinite().all()):
            continue
        constant = constant_infinities(subject, output)
        if constant is None or bool((~value.isfinite() & ~constant).any()):
            return False
    return True


def _finding(
    subject: Subject,
    index: int,
    gradient: torch.Tensor,
    where: list[int],
    count: int,
    seen: OneSided,
) -> Finding:
    from gradlint.rules._place import gradient_place

    item = subject.problem.inputs[index]
    value = gradient[tuple(where)]
    kind = "NaN" if bool(value.isnan()) else "infinite"
    at = f" at {where}" if where else ""
    returned: Any = value.item()
    measured = next(d for d in (seen.right, seen.left) if d is not None)
    more = f" ({count} of {gradient.numel()} elements)" if count > 1 else ""
    return subject.finding(
        RULE,
        f"gradient for `{item.name}` is {kind}{at}{more}, where the function has a finite "
        "derivative",
        input=item.name,
        index=where,
        place=gradient_place(subject, item),
        evidence={
            "elements": [
                {
                    "index": where,
                    "returned": returned if isinstance(returned, float) else str(returned),
                    "measured": measured,
                    "error": float("nan") if kind == "NaN" else float("inf"),
                }
            ],
            "not_finite": count,
            f"{item.name} there": repr(item.value[tuple(where)].item()),
        },
        help="backward divides by, takes the logarithm or root of, or overflows at something that "
        "vanishes or saturates here: guard it (torch.where around the denominator, not around the "
        "quotient), or use a formula without it",
    )


RULE = Rule(
    code="GL302",
    name="nan_in_backward",
    severity="error",
    summary="a gradient is NaN or Inf where the function has a finite derivative",
    module=__name__,
    probe=probe,
)
