"""Out of memory.

What it finds
-------------
The operator ran out of memory on a small sample: Python, the host or the device refused an
allocation, or the worker grew beyond its share and was ended.

Why it matters
--------------
On inputs of a few elements this is a mistake, not a lack of hardware: an index tensor expanded to
the product of all sizes, a buffer sized by a value instead of a shape, a list that grows forever.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        grid = torch.empty([x.numel() * 1000] * 4)  # sized by a power of the input's size
        return x * 2 + grid[0, 0, 0, 0]

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2

    @staticmethod
    def sample_inputs():
        return (torch.ones(8),)
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2

    @staticmethod
    def sample_inputs():
        return (torch.ones(8),)
```

How it looks
------------
```text
mylib/ops.py:6:16  GL007  out of memory in forward
  original   DefaultCPUAllocator: can't allocate memory: you tried to allocate …
  help       look for an allocation that grows with the product of the sizes
```

References
----------
- Memory management on CUDA: https://docs.pytorch.org/docs/stable/notes/cuda.html
"""

from __future__ import annotations

from gradlint.experiments.loading.process_findings import OUT_OF_MEMORY_HELP
from gradlint.experiments.raised_errors import (
    defining_file,
    is_out_of_memory,
    raised_evidence,
    raised_place,
)
from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)


def probe(subject: Subject) -> Outcome:
    """Report an allocation that was refused while the worker lived on."""
    error = subject.run.error
    if error is None or not is_out_of_memory(error.error):
        return Outcome("pass")
    prefer = defining_file(subject)
    finding = subject.finding(
        RULE,
        f"out of memory in {error.phase}",
        place=raised_place(error.error, prefer),
        evidence={"phase": error.phase, **raised_evidence(error.error, prefer)},
        help=OUT_OF_MEMORY_HELP,
    )
    return Outcome("fail", [finding])
