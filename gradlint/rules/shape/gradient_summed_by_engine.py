"""Gradient summed by the engine.

What it finds
-------------
Backward returned a gradient in the broadcast shape, larger than its input, and the engine silently
summed it. For an input that forward broadcast, such as a bias, the sum is the right gradient.

Why it matters
--------------
This is a note, not a fault: the values are right as long as the extra axes are those that forward
broadcast. Summing in backward states this, saves memory, and also works where nothing else sums: in
`torch.library.register_autograd`, in compiled graphs, in direct calls of backward.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias):
        return x + bias

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output

    @staticmethod
    def sample_inputs():
        return torch.randn(4, 3), torch.randn(3)
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias):
        return x + bias

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output.sum(0)

    @staticmethod
    def sample_inputs():
        return torch.randn(4, 3), torch.randn(3)
```

How it looks
------------
```text
mylib/ops.py:10:29  GL202  gradient for `bias` has shape [4, 3] and is summed to [3]
  10 |         return grad_output, grad_output
     |                             ^^^^^^^^^^^ returned for `bias`
  help       to make that explicit, return grad_output.sum_to_size([3])
```

References
----------
- `at::sum_to` in `validate_outputs`, torch/csrc/autograd/engine.cpp
"""

from __future__ import annotations

from gradlint.experiments.gradient_place import returned_expression
from gradlint.experiments.outcomes import skipped
from gradlint.experiments.returned_gradients import ReturnedGradient, returned_place
from gradlint.experiments.shape.compared_gradients import reduces_to, returned_shapes
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)


def probe(subject: Subject) -> Outcome:
    """Look for gradients that the engine has to sum."""
    items, note = returned_shapes(subject)
    if note:
        return skipped(note)
    findings = [
        _finding(subject, item, shape, wanted)
        for item, shape, wanted in items
        if shape != wanted and reduces_to(shape, wanted)
    ]
    return Outcome("pass", findings)


def _finding(
    subject: Subject, item: ReturnedGradient, shape: tuple[int, ...], wanted: tuple[int, ...]
) -> Finding:
    place = returned_place(item)
    text = returned_expression(place) if place else ""
    summed = f"{text if text.isidentifier() else f'({text})' if text else 'the gradient'}"
    return subject.finding(
        RULE,
        f"gradient for `{item.name}` has shape {list(shape)} and is summed to {list(wanted)}",
        input=item.name,
        place=place,
        evidence={"returned_shape": list(shape), "input_shape": list(wanted)},
        help=f"to make that explicit, return {summed}.sum_to_size({list(wanted)})"
        if text
        else f"to make that explicit, sum it in backward: .sum_to_size({list(wanted)})",
    )
