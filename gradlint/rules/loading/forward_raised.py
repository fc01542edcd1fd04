"""Forward raised.

What it finds
-------------
Forward raised an exception on the sample. PyTorch's own errors for common mistakes are explained:
a non-tensor in `save_for_backward`, a missing `@staticmethod`, forward called directly, tensors of
different dtypes, and others. The original text is kept.

Where forward runs in another dtype and raises in one that was asked for by ``--dtype``, this is
information: the op is not supported in it. It is an error where the dtype is promised, by the
``dtypes`` of a spec or of ``[tool.gradlint]``.

Why it matters
--------------
An operator that does not run has no gradient to judge: all other checks are skipped.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        return grad_output * scale, None

    @staticmethod
    def sample_inputs():
        return torch.tensor([1.0, -2.0, 3.0]), 0.5
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.scale, None

    @staticmethod
    def sample_inputs():
        return torch.tensor([1.0, -2.0, 3.0]), 0.5
```

How it looks
------------
```text
mylib/ops.py:6:34  GL003  forward raised TypeError: save_for_backward can only save variables …
  6 |         ctx.save_for_backward(x, scale)
    |                                  ^^^^^ refused after forward returned
  cause      `ctx.save_for_backward` takes tensors (or `None`) only
  original   save_for_backward can only save variables, but argument 1 is of type float
  help       keep numbers, shapes and modules as attributes: `ctx.scale = scale`
```

References
----------
- Extending torch.autograd: https://docs.pytorch.org/docs/stable/notes/extending.html
"""

from __future__ import annotations

from gradlint.experiments.outcomes import skipped
from gradlint.experiments.raised_errors import (
    is_out_of_memory,
    raised_finding,
    unsupported_finding,
)
from gradlint.experiments.subject import Subject
from gradlint.experiments.unsupported_dtype import unsupported_dtype
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)


def probe(subject: Subject) -> Outcome:
    """Report the exception with which forward ended."""
    error = subject.run.error
    if error is None or error.phase != "forward":
        return Outcome("pass")
    if is_out_of_memory(error.error):
        return skipped("memory ran out: see GL007")
    refused = unsupported_dtype(subject)
    if refused:
        found = unsupported_finding(subject, RULE, error.error, refused)
        return Outcome("skipped", [found], note=f"not supported in {refused}")
    return Outcome("fail", [raised_finding(subject, RULE, error.error, "forward raised")])
