"""Wrong number of gradients.

What it finds
-------------
Backward returned fewer values than forward has arguments (not counting `ctx`), or more. The
arguments left without a gradient are named. Surplus `None`s at the end are accepted by PyTorch and
pass.

Why it matters
--------------
The engine raises in the first backward pass. This typically happens when an argument is added to
forward later on.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, scale):
        ctx.save_for_backward(x, weight)
        ctx.scale = scale
        return scale * x * weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return ctx.scale * weight * grad_output, ctx.scale * x * grad_output

    @staticmethod
    def sample_inputs():
        return torch.tensor([1.0, -2.0, 3.0]), torch.tensor([0.5, 1.5, -1.0]), 2.0
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, scale):
        ctx.save_for_backward(x, weight)
        ctx.scale = scale
        return scale * x * weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return ctx.scale * weight * grad_output, ctx.scale * x * grad_output, None

    @staticmethod
    def sample_inputs():
        return torch.tensor([1.0, -2.0, 3.0]), torch.tensor([0.5, 1.5, -1.0]), 2.0
```

How it looks
------------
```text
mylib/ops.py:13:16  GL101  backward returned 2 gradients for 3 arguments: none for `scale`
  13 |         return ctx.scale * weight * grad_output, ctx.scale * x * grad_output
     |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  help       return 3 values, in the order of forward: x, weight, scale; None for scale
```

References
----------
- Extending torch.autograd: https://docs.pytorch.org/docs/stable/notes/extending.html
"""

from __future__ import annotations

import itertools
from typing import Any

from gradlint.experiments.returned_gradients import (
    BACKWARD_NOT_SEEN,
    argument_name,
    backward_place,
    finished_nodes,
    function_in,
    rejection,
)
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of
from gradlint.trace.applied import NodeRun

RULE = rule_of(__name__)

#: Ways of leaving arguments out that are tried when looking for the one that was forgotten.
MAX_ALIGNMENTS = 2000


def probe(subject: Subject) -> Outcome:
    """Count what backward returned against forward's arguments."""
    nodes = finished_nodes(subject)
    findings = []
    notes = []
    for node in nodes:
        values, expected = node.returned, len(node.needs_input_grad)
        if isinstance(values, list):
            continue  # not a tuple: see GL104
        values = values if isinstance(values, tuple) else (values,)
        surplus = values[expected:]
        if surplus and all(value is None for value in surplus):
            notes.append(f"{len(surplus)} surplus None at the end, accepted by PyTorch")
        elif len(values) != expected:
            findings.append(_miscounted(subject, node, values))
    rejected = rejection(subject, "wrong-number-of-gradients")
    native = [node for node in subject.run.native if node.raised is not None]
    if rejected is not None and (native or not nodes):
        name = function_in(rejected.text, subject.op.name)
        findings.append(
            subject.finding(
                RULE,
                f"backward of {name} returned a wrong number of gradients",
                place=backward_place(native[0]) if native else None,
                evidence={"original": rejected.text},
                help=rejected.fix,
            )
        )
    if findings:
        return Outcome("fail", findings)
    return Outcome(
        "pass" if nodes else "skipped", note="; ".join(notes) if nodes else BACKWARD_NOT_SEEN
    )


def _miscounted(subject: Subject, node: NodeRun, values: tuple[Any, ...]) -> Finding:
    expected, got = len(node.needs_input_grad), len(values)
    names = [argument_name(subject, node, index) for index in range(expected)]
    without = _left_out(node, values)
    nones = [names[i] for i in range(expected) if not node.is_tensor[i]]
    counts = f"{got} gradient{'s' if got != 1 else ''} for {expected} argument"
    counts += "s" if expected != 1 else ""
    if got < expected:
        listed = ", ".join(f"`{names[index]}`" for index in without)
        message = f"backward returned {counts}: none for {listed}"
    else:
        message = f"backward returned {counts}"
    order = f"return {expected} value{'s' if expected != 1 else ''}, in the order of forward: "
    order += ", ".join(names)
    if nones:
        order += f"; None for {', '.join(nones)}"
    return subject.finding(
        RULE,
        message,
        input=names[without[0]] if without else None,
        place=backward_place(node, whole=True),
        evidence={"expected": expected, "returned": got},
        help=order,
    )


def _left_out(node: NodeRun, values: tuple[Any, ...]) -> list[int]:
    """Positions of the arguments left without a gradient.

    Taken in order, the values belong to the first arguments. Where their shapes do not fit those
    and fit exactly one other choice of arguments, that is what was meant.
    """
    expected, got = len(node.needs_input_grad), len(values)
    if got >= expected:
        return []
    last = list(range(got, expected))
    if _fits(node, values, range(got)):
        return last
    choices = itertools.islice(itertools.combinations(range(expected), got), MAX_ALIGNMENTS)
    fitting = [chosen for chosen in choices if _fits(node, values, chosen)]
    if len(fitting) != 1:
        return last
    return [index for index in range(expected) if index not in fitting[0]]


def _fits(node: NodeRun, values: tuple[Any, ...], positions: Any) -> bool:
    for value, index in zip(values, positions, strict=True):
        meta = node.metas[index]
        if value is None:
            continue
        if not node.is_tensor[index] or getattr(value, "shape", None) is None:
            return False
        if meta is not None and tuple(value.shape) != meta.shape:
            return False
    return True
