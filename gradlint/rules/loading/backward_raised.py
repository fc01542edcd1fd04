"""Backward raised.

What it finds
-------------
Backward raised an exception, or the engine did while running it: a second pass through a freed
graph, a saved tensor that was modified in place, a missing backward. Other rules report the errors
by which the engine rejects what backward returned (count, shape, `None`).

Why it matters
--------------
Backward often runs for the first time in training: until then, a misspelt name or a wrong number of
unpacked tensors goes unnoticed.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        y, x = ctx.saved_tensors
        return grad_output * y

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
        y = torch.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * y

    @staticmethod
    def sample_inputs():
        return (torch.tensor([1.0, -2.0, 3.0]),)
```

How it looks
------------
```text
mylib/ops.py:12:9  GL004  backward raised ValueError: not enough values to unpack …
  12 |         y, x = ctx.saved_tensors
     |         ^^^^ raised here
  cause      a tuple was unpacked into the wrong number of names
  original   not enough values to unpack (expected 2, got 1)
  help       unpack as many names as forward saved or returned
```

References
----------
- Autograd mechanics, in-place operations and saved tensors:
  https://docs.pytorch.org/docs/stable/notes/autograd.html
"""

from __future__ import annotations

import torch

from gradlint.diagnosis.engine_errors import REJECTIONS
from gradlint.experiments.outcomes import skipped
from gradlint.experiments.preconditions import why_no_forward
from gradlint.experiments.raised_errors import (
    explained,
    is_not_implemented,
    is_out_of_memory,
    raised_finding,
    unsupported_finding,
)
from gradlint.experiments.returned_gradients import rejection
from gradlint.experiments.subject import Subject
from gradlint.experiments.unsupported_dtype import unsupported_dtype
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)

_STUB = "backward is not implemented, and says so: there is no gradient to judge"
_ELSEWHERE = "backward runs on a GPU only, and this machine has none: it can't be judged here"

#: Causes that lie in the machine: backward asks for a GPU where forward did not.
_OF_THE_MACHINE = ("cuda-not-available", "triton-without-gpu")


def probe(subject: Subject) -> Outcome:
    """Report the exception with which backward ended, unless a rule of its own explains it."""
    error = subject.run.error
    if error is None:
        return Outcome("pass")
    if error.phase != "backward":
        return skipped(why_no_forward(subject))
    if is_out_of_memory(error.error):
        return skipped("memory ran out: see GL007")
    rejected = rejection(subject, *REJECTIONS)
    if rejected is not None:
        code = REJECTIONS[rejected.slug]
        return skipped(f"the engine rejected what backward returned: see {code}")
    refused = unsupported_dtype(subject)
    if refused:
        found = unsupported_finding(subject, RULE, error.error, refused)
        return Outcome("skipped", [found], note=f"not supported in {refused}")
    inside = any(node.raised is not None for node in subject.run.nodes)
    message = "backward raised" if inside else "the backward pass raised"
    found = raised_finding(subject, RULE, error.error, message)
    cause = explained(subject, error.error)
    note = _STUB if is_not_implemented(error.error) else ""
    if cause is not None and cause.slug in _OF_THE_MACHINE and not torch.cuda.is_available():
        found.severity, note = "info", _ELSEWHERE
    return Outcome("inconclusive" if note else "fail", [found], note=note)
