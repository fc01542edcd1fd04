"""Gradient depends on grad_output being stored in full.

What it finds
-------------
A backward that fails where its incoming gradient is expanded: one element in memory, with stride 0
along every axis. This is what `out.sum().backward()` passes in. The gradient must be the same as
for a contiguous tensor of ones, and nothing may raise.

Cost: 1 forward (that of GL701) and 2 backward calls.

Why it matters
--------------
A loss that ends in a sum or a mean is the most common one. Code that reads on past the single
element finds garbage; code that writes to grad_output in place raises, or writes to all elements at
once.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad = torch.empty_strided(x.shape, grad_output.stride(), dtype=x.dtype)
        return grad.copy_(2 * x * grad_output)

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
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, -1.5, 2.5]),)
```

How it looks
------------
```text
mylib/ops.py:13:16  GL702  backward raises RuntimeError where grad_output is expanded (stride 0)
  13 |         return grad.copy_(2 * x * grad_output)
     |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ raised here
  cause      RuntimeError: unsupported operation: more than one element of the written-to tensor …
  help       begin backward with grad_output = grad_output.contiguous()
```

References
----------
- `Tensor.expand`: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.expand.html
- Gradients of sums are expanded: pytorch/FBGEMM#3006
"""

from __future__ import annotations

from gradlint.experiments.layout.cotangent_layouts import call_with_ones
from gradlint.experiments.layout.layout_findings import cotangent_findings
from gradlint.experiments.outcomes import skipped
from gradlint.experiments.preconditions import why_layouts_not_comparable
from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)

HELP = (
    "begin backward with grad_output = grad_output.contiguous(), make gradients with"
    " torch.empty_like(x) of an input, and don't write to grad_output in place"
)


def probe(subject: Subject) -> Outcome:
    """Pass ones, contiguous and expanded."""
    reason = why_layouts_not_comparable(subject)
    if reason:
        return skipped(reason)
    seen = call_with_ones(subject, "expanded")
    if seen is None:
        return skipped("grad_output has one element: it can't be expanded")
    if not seen.same:
        return Outcome("fail", cotangent_findings(subject, RULE, [seen], HELP))
    return Outcome("pass")
