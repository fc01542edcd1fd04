"""Result depends on the layout of an input.

What it finds
-------------
An operator that assumes its inputs to be contiguous. Inputs, parameters, masks and indices are
built with the same values transposed in memory (all of them, the first alone, and the others), as
slices of wider buffers, as every second element of one (except the parameters of a module, which no
caller passes in), and in channels_last format where they have four or five dimensions; the gaps
hold NaN. Outputs and gradients must be the same, and backward must not raise. Only a note is given
for a forward that refuses explicitly, and for a fault of PyTorch's own kernels, where none of your
backward code is involved.

Cost: 3 to 6 forward and as many backward calls.

Why it matters
--------------
`x.t()`, `x[:, ::2]` and `x.chunk(2, dim=-1)` are views: they keep their memory layout. An operator
that reads across the gaps returns something else for the same values, and a forward that copes with
a view may have a backward that does not.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        rows, columns = x.shape
        memory = torch.as_strided(x, (rows, columns), (columns, 1))
        return grad_output * memory.exp()

    @staticmethod
    def sample_inputs():
        generator = torch.Generator().manual_seed(0)
        return (torch.randn(3, 4, generator=generator),)
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.exp()

    @staticmethod
    def sample_inputs():
        generator = torch.Generator().manual_seed(0)
        return (torch.randn(3, 4, generator=generator),)
```

How it looks
------------
```text
mylib/ops.py:14:16  GL703  gradient for `x` is wrong where `x` is transposed in memory
  14 |         return grad_output * memory.exp()
     |                ^^^^^^^^^^^^^^^^^^^^^^^^^^ returned for `x`
  where      index [0, 3]
  measured   10 of 12 elements differ
             index    returned   expected    error
             [0, 3]  -0.630682  -1.493178  8.6e-01
  help       call .contiguous() on inputs and saved tensors whose memory is read, or use strides
```

References
----------
- Tensor views: https://docs.pytorch.org/docs/stable/tensor_view.html
- Strides of inputs ignored: fla-org/flash-linear-attention#871
"""

from __future__ import annotations

from gradlint.experiments.layout.input_layouts import compare_layouts
from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)

LAYOUTS = ("transposed", "padded", "strided", "channels_last")

HELP = "call .contiguous() on inputs and saved tensors whose memory is read, or use their strides"


def probe(subject: Subject) -> Outcome:
    """Call the op with inputs in other layouts, and compare outputs and gradients."""
    return compare_layouts(subject, RULE, LAYOUTS, HELP)
