"""Gradient depends on the layout of grad_output.

What it finds
-------------
A backward that takes the memory of its incoming gradient for contiguous. The same cotangents are
handed over transposed in memory, as a slice of a wider buffer, as every second element of one, and
in channels_last form where they have four or five dimensions; the gaps hold NaN. The gradients must
be the same, and nothing may raise. A fault of PyTorch's own kernels, where no backward written by
anybody else takes part, is noted only.

Cost: 1 forward and up to 4 backward calls.

Why it matters
--------------
Autograd hands over gradients as the next operator left them. A transposition, a slice or a
convolution behind the operator is enough, and the gradient is silently another one, or training
stops with an error in backward. Tests that draw their gradients at random never see it.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        flat = grad_output.view(-1)
        return (flat * ctx.scale).view(grad_output.shape), None

    @staticmethod
    def sample_inputs():
        generator = torch.Generator().manual_seed(0)
        return torch.randn(3, 4, generator=generator), 0.5
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
        flat = grad_output.contiguous().view(-1)
        return (flat * ctx.scale).view(grad_output.shape), None

    @staticmethod
    def sample_inputs():
        generator = torch.Generator().manual_seed(0)
        return torch.randn(3, 4, generator=generator), 0.5
```

How it looks
------------
```text
mylib/ops.py:11:16  GL701  backward raises RuntimeError where grad_output is transposed in memory
  11 |         flat = grad_output.view(-1)
     |                ^^^^^^^^^^^^^^^^^^^^ raised here
  cause      RuntimeError: view size is not compatible with input tensor's size and stride …
  help       begin backward with grad_output = grad_output.contiguous(), or use its strides
```

References
----------
- Gradients arrive in any layout: Dao-AILab/flash-attention#355, pytorch/vision#920
- gradcheck hands over contiguous ones only: pytorch/pytorch#194719
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.rules._rule import Outcome, Rule

if TYPE_CHECKING:
    from gradlint.rules._subject import Subject

LAYOUTS = ("transposed", "padded", "strided", "channels_last")

HELP = (
    "begin backward with grad_output = grad_output.contiguous(), or hand its strides on to whatever"
    " reads its memory"
)


def probe(subject: Subject) -> Outcome:
    """Hand over the same cotangents in other layouts."""
    from gradlint.rules.layout._cotangents import with_cotangents
    from gradlint.rules.layout._findings import of_cotangents
    from gradlint.rules.layout._seen import unable

    reason = unable(subject)
    if reason:
        return Outcome("skipped", note=reason)
    looks = [with_cotangents(subject, layout) for layout in LAYOUTS]
    seen = [item for item in looks if item is not None]
    if not seen:
        return Outcome("skipped", note="grad_output has one element: it has no other layout")
    changed = [item for item in seen if not item.same]
    if changed:
        return Outcome("fail", of_cotangents(subject, RULE, changed, HELP))
    return Outcome("pass")


RULE = Rule(
    code="GL701",
    name="non_contiguous_grad_output",
    severity="error",
    summary="the gradient depends on how grad_output lies in memory",
    module=__name__,
    probe=probe,
)
