"""Gradient that is not a tensor.

What it finds
-------------
Backward returned, for a tensor argument, something that is neither a tensor nor `None`: a Python
number, a NumPy array, a list instead of a tuple.

Why it matters
--------------
The engine raises in the first backward pass, and its message ("expected Variable or None") does not
name the argument.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return [grad_output * y, grad_output * x]

    @staticmethod
    def sample_inputs():
        return torch.tensor([1.0, -2.0, 3.0]), torch.tensor([0.5, 1.5, -1.0])
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output * y, grad_output * x

    @staticmethod
    def sample_inputs():
        return torch.tensor([1.0, -2.0, 3.0]), torch.tensor([0.5, 1.5, -1.0])
```

How it looks
------------
```text
mylib/ops.py:12:9  GL104  backward returned a list instead of a tuple
  help       return a tuple: return (...), not [...]
```

References
----------
- Extending torch.autograd: https://docs.pytorch.org/docs/stable/notes/extending.html
"""

from __future__ import annotations

import torch

from gradlint.base.text import short_text
from gradlint.experiments.outcomes import skipped
from gradlint.experiments.returned_gradients import (
    BACKWARD_NOT_SEEN,
    ReturnedGradient,
    backward_place,
    finished_nodes,
    rejection,
    returned_gradients,
    returned_place,
)
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of
from gradlint.trace.applied import NodeRun

RULE = rule_of(__name__)


def probe(subject: Subject) -> Outcome:
    """Look for returned values that are neither tensors nor None."""
    nodes = finished_nodes(subject)
    if not nodes:
        rejected = rejection(subject, "gradient-not-a-tensor")
        if rejected is None:
            return skipped(BACKWARD_NOT_SEEN)
        finding = subject.finding(
            RULE,
            "backward returned something that is not a tensor",
            evidence={"original": rejected.text},
            help=rejected.fix,
        )
        return Outcome("fail", [finding])
    lists = [node for node in nodes if isinstance(node.returned, list)]
    findings = [_list(subject, node) for node in lists]
    findings += [
        _finding(subject, item)
        for item in returned_gradients(subject)
        if item.is_tensor and item.node not in lists and not _acceptable(item.value)
    ]
    return Outcome("fail", findings) if findings else Outcome("pass")


def _acceptable(value: object) -> bool:
    return value is None or isinstance(value, torch.Tensor)


def _list(subject: Subject, node: NodeRun) -> Finding:
    return subject.finding(
        RULE,
        "backward returned a list instead of a tuple",
        place=backward_place(node, whole=True),
        evidence={"returned": f"a list of {len(node.returned)}"},
        help="return a tuple: return (...), not [...]",
    )


def _finding(subject: Subject, item: ReturnedGradient) -> Finding:
    kind = type(item.value).__name__
    like = f"torch.full_like({item.node.arguments[item.position]}, value)"
    if kind == "ndarray":
        like = "torch.from_numpy(...), on the input's device and in its dtype"
    return subject.finding(
        RULE,
        f"gradient for `{item.name}` is not a tensor but {_article(kind)} {kind}",
        input=item.name,
        place=returned_place(item),
        evidence={"returned": short_text(item.value)},
        help=f"return a tensor of the shape of `{item.name}`, for instance {like}",
    )


def _article(word: str) -> str:
    return "an" if word[:1].lower() in "aeiou" else "a"
