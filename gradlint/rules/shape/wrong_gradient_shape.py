"""Wrong gradient shape.

What it finds
-------------
Backward returned a gradient that can't be reduced to the shape of its input. The engine accepts
shapes that broadcasting the input would give, and sums them (GL202); it rejects all others.

Why it matters
--------------
The engine raises in the first backward pass. A scalar passed on without expanding, a forgotten
transposition, a gradient in the place of another input's: all of them first show as a wrong shape.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square().sum()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output

    @staticmethod
    def sample_inputs():
        return (torch.tensor([1.0, -2.0, 3.0]),)
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
        return (torch.tensor([1.0, -2.0, 3.0]),)
```

How it looks
------------
```text
mylib/ops.py:11:16  GL201  gradient for `x` has shape [], its input [3]
  11 |         return grad_output
     |                ^^^^^^^^^^^ returned for `x`
  help       the gradient of a reduction is spread over what was reduced: expand it to [3]
```

References
----------
- `validate_outputs` in torch/csrc/autograd/engine.cpp
"""

from __future__ import annotations

from gradlint.experiments.outcomes import skipped
from gradlint.experiments.raised_errors import if_guessed
from gradlint.experiments.returned_gradients import ReturnedGradient, returned_place
from gradlint.experiments.shape.compared_gradients import (
    engine_finding,
    reduces_to,
    returned_shapes,
)
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.explained import backward_calls_stand_in
from gradlint.model.report import Grounds
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)


def probe(subject: Subject) -> Outcome:
    """Compare the shape of every returned gradient with that of its input."""
    items, note = returned_shapes(subject)
    findings = [
        subject.finding(
            RULE,
            f"gradient for `{item.name}` has shape {list(shape)}, its input {list(wanted)}",
            input=item.name,
            place=returned_place(item),
            evidence={"returned_shape": list(shape), "input_shape": list(wanted)},
            grounds=_grounds(subject, shape, wanted),
            help=_advice(item, shape, wanted) + if_guessed(subject),
        )
        for item, shape, wanted in items
        if not reduces_to(shape, wanted)
    ]
    if not findings:
        text = "a gradient whose shape does not fit its input"
        findings = engine_finding(subject, RULE, "invalid-gradient-shape", text)
    if findings:
        return Outcome("fail", findings)
    return skipped(note) if note else Outcome("pass")


def _grounds(subject: Subject, shape: tuple[int, ...], wanted: tuple[int, ...]) -> Grounds:
    """Inputs that were guessed are in doubt where each size that differs is that of a whole number
    among the arguments: a number of steps that the input was to have, too; and where backward calls
    a function among them, whose result may have any shape."""
    numbers = {value for _, value in subject.arguments() if type(value) is int}
    differing = {got for got, size in zip(shape, wanted, strict=False) if got != size}
    doubtful = len(shape) == len(wanted) and bool(differing) and differing <= numbers
    if subject.sample.origin != "inferred" or not (doubtful or backward_calls_stand_in(subject)):
        return subject.grounds()
    return subject.grounds(silent=False, guessed=True)


def _advice(item: ReturnedGradient, shape: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    others = [
        name
        for index, (name, meta) in enumerate(zip(item.node.arguments, item.node.metas, strict=True))
        if index != item.position and meta is not None and meta.shape == shape
    ]
    if len(shape) > 1 and shape[:-2] + shape[-2:][::-1] == wanted:
        return "the last two axes are exchanged: return its .mT, or exchange the factors"
    if others and shape:
        named = " or ".join(f"`{name}`" for name in others)
        return f"this is the shape of {named}: check the order of the returned values"
    if len(shape) < len(wanted) or any(size == 1 for size in shape):
        return (
            "the gradient of a reduction is spread over what was reduced: expand it to "
            f"{list(wanted)}"
        )
    return f"return a gradient of shape {list(wanted)}, that of `{item.name}`"
