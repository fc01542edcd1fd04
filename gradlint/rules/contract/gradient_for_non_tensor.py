"""Gradient for a non-tensor input.

What it finds
-------------
Backward returned something other than `None` for an argument that is not a tensor: a number, a
flag, a size.

Why it matters
--------------
The engine raises in the first backward pass. Often the values are returned in a different order
than forward's arguments, so that a gradient stands in the place of a number.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, exponent):
        ctx.save_for_backward(x)
        ctx.exponent = exponent
        return x**exponent

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        n = ctx.exponent
        return grad_output * n * x ** (n - 1), grad_output * x**n * torch.log(x)

    @staticmethod
    def sample_inputs():
        return torch.tensor([1.0, 2.0, 3.0]), 3
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, exponent):
        ctx.save_for_backward(x)
        ctx.exponent = exponent
        return x**exponent

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        n = ctx.exponent
        return grad_output * n * x ** (n - 1), None

    @staticmethod
    def sample_inputs():
        return torch.tensor([1.0, 2.0, 3.0]), 3
```

How it looks
------------
```text
mylib/ops.py:14:48  GL102  gradient returned for `exponent`, which is not a tensor
  14 |         return grad_output * n * x ** (n - 1), grad_output * x**n * torch.log(x)
     |                                                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  help       return None for `exponent`
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
    finished_nodes,
    rejection,
    returned_gradients,
    returned_place,
)
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)


def probe(subject: Subject) -> Outcome:
    """Look for values returned in the place of arguments that are not tensors."""
    rejected = rejection(subject, "gradient-for-non-tensor", "wrong-number-of-gradients")
    if rejected is not None and rejected.slug == "wrong-number-of-gradients":
        return skipped("the number of gradients is wrong: see GL101")
    if not finished_nodes(subject):
        if rejected is None:
            return skipped(BACKWARD_NOT_SEEN)
        finding = subject.finding(
            RULE,
            "backward returned a gradient for an argument that is not a tensor",
            evidence={"original": rejected.text},
            help=rejected.fix,
        )
        return Outcome("fail", [finding])
    findings = [
        _finding(subject, item)
        for item in returned_gradients(subject)
        if not item.is_tensor and item.meta is None and item.value is not None
    ]
    if not _all_seen(subject):
        findings = findings if rejected is not None else []
    return Outcome("fail", findings) if findings else Outcome("pass")


def _all_seen(subject: Subject) -> bool:
    """Whether forward's arguments were seen; else which of them are tensors is a guess."""
    return all(any(node.metas) for node in finished_nodes(subject))


def _finding(subject: Subject, item: ReturnedGradient) -> Finding:
    advice = f"return None for `{item.name}`"
    if isinstance(item.value, torch.Tensor):
        others = [
            name
            for name, meta in zip(item.node.arguments, item.node.metas, strict=True)
            if meta is not None and meta.shape == tuple(item.value.shape)
        ]
        if others:
            advice += f"; if it is meant for {' or '.join(f'`{n}`' for n in others)}, the order "
            advice += "of the returned values is wrong"
    return subject.finding(
        RULE,
        f"gradient returned for `{item.name}`, which is not a tensor",
        input=item.name,
        place=returned_place(item),
        evidence={"returned": _described(item.value)},
        help=advice,
    )


def _described(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {list(value.shape)}"
    return short_text(value)
