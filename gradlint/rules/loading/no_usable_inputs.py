"""No usable inputs found.

What it finds
-------------
No inputs were given, and none could be inferred on which forward and backward run. Names,
annotations, defaults and tensor shapes are tried, and objects with the attributes that the code
reads; an operator that takes an object with methods, or tensors whose sizes depend on each other in
unusual ways, needs help.

Why it matters
--------------
Nothing was checked. The finding shows what was tried and what each attempt raised, so that the
missing line is quickly written.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, graph):
        ctx.graph = graph
        return graph.spread(x)

    @staticmethod
    def backward(ctx, grad_output):
        return ctx.graph.gather(grad_output), None
```

Good
----
```python
import torch

class Graph:
    def __init__(self, weights):
        self.weights = weights

    def spread(self, x):
        return self.weights @ x

    def gather(self, grad):
        return self.weights.mT @ grad

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, graph):
        ctx.graph = graph
        return graph.spread(x)

    @staticmethod
    def backward(ctx, grad_output):
        return ctx.graph.gather(grad_output), None

    @staticmethod
    def sample_inputs():
        weights = torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]], dtype=torch.float64)
        return torch.randn(3), Graph(weights)
```

How it looks
------------
```text
mylib/ops.py:3:1  GL002  no usable inputs found: 14 attempts, none ran
  tried      randn(3, 4), None: AttributeError: 'NoneType' object has no attribute 'spread'
  help       let gradlint learn them from a program that calls it (gradlint record -- python
             train.py), or give inputs: @staticmethod …
```

References
----------
- `gradlint record -- COMMAND` learns inputs from a program that calls the operator.
- `gradlint init TARGET` writes a specification to fill in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradlint.diagnosis.engine_errors import BESIDE_THE_INPUTS, explain_text
from gradlint.experiments.loading.process_findings import process_finding
from gradlint.model.report import Finding
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)

#: How inputs are learned.
RECORD = "gradlint record -- python your_program.py"

#: Attempts shown in the evidence.
SHOWN = 8


def make_finding(
    target: str,
    attempts: Sequence[tuple[str, str]],
    line_to_add: str,
    settings: Settings,
    *,
    count: int = 0,
    **place: Any,
) -> Finding:
    """The finding that no inputs were found for ``target``.

    Args:
        target: as typed.
        attempts: pairs of the arguments tried and the error they raised, most informative first;
            one for each error.
        line_to_add: what the user can write to give inputs.
        count: how often the op was called, where that is more.
        place: location and excerpt of the operator.
    """
    count = max(count, len(attempts))
    tried = f"{count} attempt{'s' if count != 1 else ''}, none ran" if count else "nothing to try"
    shown = {f"tried {n}": f"{a}: {e}" for n, (a, e) in enumerate(attempts[:SHOWN], 1)}
    if len(attempts) > SHOWN:
        shown["left out"] = f"{len(attempts) - SHOWN} more errors"
    give = f"give inputs: {line_to_add}" if line_to_add else "give inputs with --inputs"
    help = f"let gradlint learn them from a program that calls it ({RECORD}), or {give}"
    explanations = [explain_text(error) for _, error in attempts]
    first = explanations[0] if explanations else None
    # An error that every attempt raised is not about the inputs, nor is a file that is missing.
    common = first if first and all(e and e.slug == first.slug for e in explanations) else None
    beside = [e for e in explanations if e is not None and e.slug in BESIDE_THE_INPUTS]
    common = common or (beside[0] if beside else None)
    return process_finding(
        RULE,
        target,
        f"no usable inputs found: {tried}",
        settings,
        evidence=shown,
        cause_text=common.meaning if common else "",
        help=f"{common.fix}; {'' if beside else 'or '}{help}" if common else help,
        **place,
    )
