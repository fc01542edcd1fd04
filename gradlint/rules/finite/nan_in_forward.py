"""NaN or Inf in forward.

What it finds
-------------
Forward returned NaN or Inf although all inputs are finite. Infinities that stay in place whatever
the inputs are considered deliberate, such as the -inf of an attention mask. Where an operator of
PyTorch is the first to return them, and is finite for the same arguments in float64, this is
information.

Besides the sample, inputs with single special elements are tried (zero, equal to another element,
or equal to a number in the op's arguments or source). NaN is reported there where the function
tends to a finite value that its formula misses (0 · log 0, sin(0) / 0). Where forward divides by
that very input, such a value may not be meant. This is information if something that is not zero is
divided by it, or the elements of other tensors (a width, a rate, a half-life), or if the divisor is
an element selected from the input (a running maximum), or if all values that you gave have one
sign. Where the inputs were guessed, all of it is information: forward may not be meant for such
values. Cost: up to 1 forward and 1 backward call, and 7 forward calls for each special element (at
most 7 elements).

Why it matters
--------------
One NaN in a batch spoils every parameter in the next step. Where the function itself is not finite,
its gradient can't be judged.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.log(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (torch.log(x) + 1)

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.0, 0.5, 1.0]),)
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.xlogy(x, x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (torch.log(x) + 1)

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.0, 0.5, 1.0]),)
```

How it looks
------------
```text
mylib/ops.py:4:1  GL301  1 of 3 elements of `output` is NaN, first at [0]
  at [0]     x = 0
  help       guard the logarithm, root or division at this value
```

References
----------
- Reports: jeshraghian/snntorch#433, facebookresearch/pytorch3d#561
"""

from __future__ import annotations

from typing import Any, Literal

import torch

from gradlint.experiments.finite.extremes import make_extremes
from gradlint.experiments.finite.poles import divided_by_zeros
from gradlint.experiments.finite.removable_singularities import RemovableNaN, removable_nans
from gradlint.experiments.finite.torch_nonfinite import torch_operator_to_blame
from gradlint.experiments.finiteness import constant_infinities, inputs_finite, values_of
from gradlint.experiments.outcomes import skipped
from gradlint.experiments.preconditions import why_not_run
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of
from gradlint.trace.op_io import Output

RULE = rule_of(__name__)


def probe(subject: Subject) -> Outcome:
    """Look for NaN and Inf in the outputs at finite inputs."""
    run = subject.run
    if not run.outputs:
        return skipped(why_not_run(subject) or "no output is a tensor")
    if not inputs_finite(subject):
        return skipped("an input is not finite")
    findings = []
    notes = []
    for output in run.outputs:
        value = values_of(output.value)
        if value is None or bool(value.isfinite().all()):
            continue
        nan, infinite = value.isnan(), value.isinf()
        if infinite.any():
            constant = constant_infinities(subject, output)
            if constant is None or bool(constant.any()):
                count = int((infinite if constant is None else constant).sum())
                notes.append(
                    f"{count} elements of `{output.name}` are infinite whatever the inputs: "
                    "considered deliberate"
                )
                infinite &= False if constant is None else ~constant
        bad = nan | infinite
        if bad.any():
            findings.append(_finding(subject, output, value, nan, bad))
    if not findings:
        findings = _holes(subject)
    return Outcome("fail" if findings else "pass", findings, note="; ".join(notes))


def _holes(subject: Subject) -> list[Finding]:
    """NaN at a single special element where the function has a limit: the first, and preferably
    one at which forward does not divide by that very element."""
    extreme = subject.once(make_extremes).named("single")
    holes = removable_nans(subject, extreme) if extreme is not None else iter(())
    hole, divides = None, True
    for found in holes:
        position = found.place.position
        outside = {position} if _beyond_given(subject, found) else ()
        divides_here = position in divided_by_zeros(subject, found.values, outside=outside)
        if hole is None or not divides_here:
            hole, divides = found, divides_here
        if not divides:
            break
    if hole is None:
        return []
    item = subject.problem.inputs[hole.place.position]
    return [
        subject.finding(
            RULE,
            f"`{hole.output}` is NaN where an element of `{item.name}` {hole.place.words}, but "
            f"tends to {hole.limit:.3g} there",
            output=hole.output,
            index=hole.index,
            evidence={f"{item.name} there": hole.place.value, "limit": hole.limit},
            grounds=subject.grounds(
                where="special", explained="divisor" if divides else _where_guessed(subject)
            ),
            help="0 · inf or 0 / 0 in the formula: write its limit with torch.where, guarding the "
            "argument of the division or logarithm too, or use torch.xlogy, torch.sinc …",
        )
    ]


def _where_guessed(subject: Subject) -> Literal["undefined"] | None:
    return "undefined" if subject.sample.origin == "inferred" else None


def _beyond_given(subject: Subject, hole: RemovableNaN) -> bool:
    """Whether the zero at a hole lies outside of what was given: all values have one sign."""
    given = subject.problem.values()[hole.place.position].detach()
    one_sign = bool((given > 0).all()) or bool((given < 0).all())
    return hole.place.value == 0.0 and subject.sample.origin != "inferred" and one_sign


def _finding(
    subject: Subject, output: Output, value: torch.Tensor, nan: torch.Tensor, bad: torch.Tensor
) -> Finding:
    count, total = int(bad.sum()), value.numel()
    first = bad.nonzero()[0].tolist()
    kind = "NaN" if bool(nan.any()) else "infinite"
    if bool(nan.any()) and bool((bad & ~nan).any()):
        kind = "NaN or infinite"
    where = f", first at {first}" if first else ""
    evidence: dict[str, Any] = {"nan": int(nan.sum()), "inf": int((bad & ~nan).sum())}
    for item in subject.problem.inputs:
        if tuple(item.value.shape) == tuple(value.shape):
            evidence[f"{item.name} there"] = repr(item.value[tuple(first)].item())
    blamed = torch_operator_to_blame(subject)
    if blamed:
        evidence["first returned by"] = f"PyTorch's {blamed}, which is finite in float64"
    verb = "is" if count == 1 else "are"
    return subject.finding(
        RULE,
        f"{count} of {total} elements of `{output.name}` {verb} {kind} at finite inputs{where}",
        output=output.name,
        index=first,
        evidence=evidence,
        grounds=subject.grounds(torch_owned=bool(blamed), explained=_where_guessed(subject)),
        help="guard the division, logarithm, root or exponential at this value; if the inputs lie "
        "outside the op's domain, give others (--inputs)",
    )
