"""Result depends on where in its storage a tensor starts.

What it finds
-------------
An operator that reads a tensor from the start of its storage, or that relies on its address being
aligned. Inputs and incoming gradients are passed contiguous, but at storage offset 1, behind an
element of NaN. Outputs and gradients must be the same, and backward must not raise. Unaligned
addresses matter on CUDA devices above all. A fault of PyTorch's own kernels, where none of your
backward code is involved, is only a note.

Cost: 1 forward and 2 backward calls, in addition to the forward of GL701.

Why it matters
--------------
`flat[1:]`, `qkv[1]` and parameters packed into one buffer are contiguous and may start anywhere.
Code that checks for contiguity still reads the wrong elements, or a vectorised load crashes.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        x = x.contiguous()
        memory = torch.as_strided(x, x.shape, x.stride(), 0)
        return grad_output * memory.cos()

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
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        x = x.contiguous()
        memory = torch.as_strided(x, x.shape, x.stride(), x.storage_offset())
        return grad_output * memory.cos()

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, -1.5, 2.5]),)
```

How it looks
------------
```text
mylib/ops.py:14:16  GL704  gradient for `x` is not finite where `x` is contiguous at …
  14 |         return grad_output * memory.cos()
     |                ^^^^^^^^^^^^^^^^^^^^^^^^^^ returned for `x`
             index      returned     expected       error
             [0]            nan     +0.412036         inf
  help       start at data_ptr() or storage_offset(), not at the storage; test alignment
```

References
----------
- `Tensor.storage_offset`:
  https://docs.pytorch.org/docs/stable/generated/torch.Tensor.storage_offset.html
- Contiguous and not aligned: pytorch/FBGEMM#1212, vllm-project/vllm#45466
"""

from __future__ import annotations

from gradlint.experiments.layout.cotangent_layouts import call_with_cotangents
from gradlint.experiments.layout.input_layouts import compare_layouts
from gradlint.experiments.layout.layout_findings import cotangent_findings
from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)

HELP = (
    "start at the tensor's data_ptr() or storage_offset(), not at the start of its storage; use"
    " vectorised loads only where the address is a multiple of their size"
)


def probe(subject: Subject) -> Outcome:
    """Pass inputs and cotangents at storage offset 1."""
    outcome = compare_layouts(subject, RULE, ("offset",), HELP)
    if outcome.verdict == "skipped":
        return outcome
    seen = call_with_cotangents(subject, "offset")
    if seen is not None and not seen.same:
        return Outcome("fail", outcome.findings + cotangent_findings(subject, RULE, [seen], HELP))
    return outcome
