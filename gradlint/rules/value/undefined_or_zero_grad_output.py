"""Undefined or zero grad_output mishandled.

What it finds
-------------
A backward that fails where a loss does not use every output. One output at a time gets a gradient,
and the others get none at all (`None` in backward after `ctx.set_materialize_grads(False)`), or
zeros: both must give the same gradients, and neither may raise. Where all incoming gradients are
zero or undefined, the gradients must be zero; NaN there comes from `0·inf`.

Cost: one forward; one backward for zeros, one for undefined gradients where a Python Function is
involved, and two more for each of up to four outputs where there are several.

Why it matters
--------------
Which outputs a loss uses is up to the caller. A mask or a `detach` far away is enough for training
to raise in backward, or for NaN to appear in weights whose loss is masked out.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return x.sin(), x.square()

    @staticmethod
    def backward(ctx, grad_sin, grad_square):
        (x,) = ctx.saved_tensors
        return grad_sin * x.cos() + grad_square * 2 * x

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
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return x.sin(), x.square()

    @staticmethod
    def backward(ctx, grad_sin, grad_square):
        (x,) = ctx.saved_tensors
        grad = torch.zeros_like(x)
        if grad_sin is not None:
            grad = grad + grad_sin * x.cos()
        if grad_square is not None:
            grad = grad + grad_square * 2 * x
        return grad

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, -1.5, 2.5]),)
```

How it looks
------------
```text
mylib/ops.py:13:37  GL405  backward raises TypeError where `output[1]` is unused
  13 |         return grad_sin * x.cos() + grad_square * 2 * x
     |                                     ^^^^^^^^^^^^^^^ raised here
  cause      undefined-grad-output: TypeError: unsupported operand type(s) for *: 'NoneType' and …
  where      output `output[1]`
  help       test each incoming gradient for None and leave its term out, or let PyTorch pass zeros:
             remove ctx.set_materialize_grads(False)
```

References
----------
- `set_materialize_grads`: https://docs.pytorch.org/docs/stable/notes/extending.html
- `0·inf` in masked losses: pytorch/pytorch#68425
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from gradlint.base.text import error_line
from gradlint.experiments.gradient_agreement import disagreement, with_stored_indices
from gradlint.experiments.gradient_place import gradient_place
from gradlint.experiments.outcomes import judged_by, skipped
from gradlint.experiments.preconditions import (
    NESTED_OUTPUT,
    why_not_differentiable,
    why_not_measurable,
)
from gradlint.experiments.raised_errors import defining_file, raised_evidence, raised_place
from gradlint.experiments.returned_gradients import backward_place
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.repeated_backward import Replay, Trial
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of
from gradlint.trace.op_io import OpRaised

RULE = rule_of(__name__)

#: Outputs that are tried alone; of more, the first ones.
MOST_OUTPUTS = 4

UNDEFINED, ZERO = "undefined-grad-output", "zero-grad-output"

_HELP = {
    UNDEFINED: "test each incoming gradient for None and leave its term out, or let PyTorch pass "
    "zeros: remove ctx.set_materialize_grads(False)",
    ZERO: "where the incoming gradient is zero, so is the gradient: guard quotients, roots and "
    "powers of grad_output, and factors that may be infinite",
}


def probe(subject: Subject) -> Outcome:
    """Leave out, or set to zero, the gradients of all outputs, and of all but one."""
    reason = why_not_differentiable(subject) or why_not_measurable(subject)
    if reason:
        return skipped(reason)
    if any(output.value.is_nested for output in subject.run.outputs):
        return skipped(NESTED_OUTPUT)
    if not _look(subject, Replay(subject.problem)):
        return Outcome("pass")
    # A finding is confirmed with a forward for every backward.
    findings = _look(subject, Replay(subject.problem, fresh=True))
    return judged_by(findings)


def _look(subject: Subject, replay: Replay) -> list[Finding]:
    """The defects seen, each once."""
    outputs = replay.outputs
    vs = [subject.run.cotangents[item.name] for item in outputs]
    zeros = [torch.zeros_like(v) for v in vs]
    findings = _expect(subject, replay.trial([*zeros]), None, "every incoming gradient is zero")
    for chosen, output in enumerate(outputs[:MOST_OUTPUTS] if len(outputs) > 1 else ()):
        with_zeros = replay.trial([v if k == chosen else zeros[k] for k, v in enumerate(vs)])
        alone = replay.trial([v if k == chosen else None for k, v in enumerate(vs)])
        others = [item.name for item in outputs if item is not output]
        unused = others[0] if len(others) == 1 else None
        if with_zeros.error is not None or alone.error is not None:
            text = f"`{unused}` is unused" if unused else f"only `{output.name}` is used"
            if with_zeros.error is not None:
                findings.append(_raised(subject, with_zeros.error, ZERO, text, unused))
            elif alone.error is not None:
                findings.append(_raised(subject, alone.error, UNDEFINED, text, unused))
            continue
        text = f"`{unused}` gets no gradient" if unused else f"only `{output.name}` gets a gradient"
        findings += _expect(subject, alone, with_zeros, text, unused)
    if subject.run.nodes and not findings:
        trial = replay.trial([None] * len(vs))
        found = _expect(subject, trial, None, "no output gets a gradient", cause=UNDEFINED)
        # This takes a Function downstream that returns None, which is rare.
        findings += [replace(item, severity="warning") for item in found]
    return _each_once(findings)


def _each_once(findings: list[Finding]) -> list[Finding]:
    seen: dict[tuple[str | None, str | None], Finding] = {}
    for finding in findings:
        seen.setdefault((finding.cause, finding.input), finding)
    return list(seen.values())


def _expect(
    subject: Subject,
    trial: Trial,
    other: Trial | None,
    text: str,
    unused: str | None = None,
    cause: str | None = None,
) -> list[Finding]:
    """Findings where the gradients of ``trial`` differ from those of ``other``, or from zero.

    Args:
        text: what was done with the incoming gradients.
        unused: the output that was left out, if it was a single one.
        cause: default by whether there is an ``other``.
    """
    slug = cause or (UNDEFINED if other else ZERO)
    if trial.error is not None:
        return [_raised(subject, trial.error, slug, text, unused)]
    found = []
    for position, gradient in enumerate(trial.gradients):
        expected = other.gradients[position] if other else None
        numbers = disagreement(subject, position, gradient, expected)
        if numbers is None:
            continue
        # An added constant makes the first-order gradient wrong too, which GL401 reports.
        if not numbers["not_finite"] and position in subject.wrong_inputs:
            continue
        found.append(_value(subject, position, slug, text, unused, numbers))
    return found


def _value(
    subject: Subject,
    position: int,
    slug: str,
    text: str,
    unused: str | None,
    numbers: dict[str, Any],
) -> Finding:
    item = subject.problem.inputs[position]
    count = numbers["not_finite"]
    kind = f"not finite in {count} of {numbers['numel']} elements" if count else "wrong"
    finding = subject.finding(
        RULE,
        f"gradient for `{item.name}` is {kind} where {text}",
        cause=slug,
        cause_text=f"{slug}: with zeros in its place the gradient differs"
        if slug == UNDEFINED
        else f"{slug}: zero times anything finite is zero",
        input=item.name,
        output=unused,
        index=numbers["elements"][0]["index"],
        place=gradient_place(subject, item),
        evidence=numbers,
        help=_HELP[slug],
    )
    return with_stored_indices(subject, position, finding)


def _raised(
    subject: Subject, raised: OpRaised, slug: str, text: str, unused: str | None
) -> Finding:
    error = raised.error
    prefer = defining_file(subject)
    nodes = subject.run.nodes
    return subject.finding(
        RULE,
        f"backward raises {type(error).__name__} where {text}",
        cause=slug,
        cause_text=f"{slug}: {error_line(error)}",
        output=unused,
        place=raised_place(error, prefer) or (backward_place(nodes[-1]) if nodes else None),
        evidence=raised_evidence(error, prefer),
        grounds=subject.grounds(refused=isinstance(error, NotImplementedError)),
        help=_HELP[slug],
    )
