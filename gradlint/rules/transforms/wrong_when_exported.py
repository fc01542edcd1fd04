"""Wrong when exported.

What it finds
-------------
A forward that returns different values once it is exported. Programs are made at the sample and run
at values nearby: with `torch.export`; as a TorchScript trace where no Python Function is involved
(a trace would call it rather than record it); and as an ONNX model where this rule is selected by
its code and `onnx` and `onnxscript` are installed. An exporter that refuses, or warns that its
program may be incorrect, is not reported. A trace that differs alone is information, as PyTorch
has deprecated TorchScript. Ops that call more than a hundred operators take long to trace: they are
exported only where this rule is selected by its code.

Cost: 3 forward calls; 1 forward and 1 backward at the values nearby, shared with other rules.

Why it matters
--------------
The exported model is what runs in production, where no gradient is computed that could reveal the
difference.

Bad
---
```python
import torch

class Op(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor([2.0, 0.5, 1.5]))

    def forward(self, x):
        if torch.jit.is_tracing() or torch.compiler.is_compiling():
            return self.scale * (0.2 * x + 0.5).clamp(0, 1)
        return self.scale * x.sigmoid()

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, -1.5, 2.0]),)
```

Good
----
```python
import torch

class Op(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor([2.0, 0.5, 1.5]))

    def forward(self, x):
        if torch.jit.is_tracing() or torch.compiler.is_compiling():
            return self.scale * (1 / (1 + (-x).exp()))
        return self.scale * x.sigmoid()

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, -1.5, 2.0]),)
```

How it looks
------------
```text
mylib/ops.py:3:1  GL905  `output` differs in torch.export
   3 | class Op(torch.nn.Module):
  cause      exported: the op itself returns different values
             index      returned     expected       error
             [1]       +0.188402    +0.172931     1.5e-02
  help       let forward compute the same thing while it is traced
```

References
----------
- torch.export: https://docs.pytorch.org/docs/stable/export.html
- Traces: https://docs.pytorch.org/docs/stable/generated/torch.jit.trace.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from gradlint.base.text import error_line
from gradlint.experiments.baseline_comparison import Difference
from gradlint.experiments.forward_operators import is_random, why_not_traced
from gradlint.experiments.outcomes import judged_by, skipped
from gradlint.experiments.preconditions import why_not_transformable
from gradlint.experiments.subject import Subject
from gradlint.experiments.transforms.exported import (
    ForwardModule,
    Program,
    as_onnx,
    exported,
    traced,
)
from gradlint.experiments.transforms.reference_points import (
    Point,
    nearby_point,
    output_difference,
    quiet_compilers,
    sample_point,
)
from gradlint.experiments.transforms.transform_findings import difference_finding
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of
from gradlint.trace.random import common_random_numbers

if TYPE_CHECKING:
    Exporter = Callable[[ForwardModule, tuple[Any, ...]], Program]

RULE = rule_of(__name__)

#: PyTorch has deprecated TorchScript: a difference there is worth knowing and no fault of the op.
TRACE = "a TorchScript trace"

_HELP = (
    "let forward compute the same thing while it is traced (torch.jit.is_tracing, "
    "torch.compiler.is_exporting), using PyTorch operators only; what other code writes to "
    "memory does not become part of the program"
)


def probe(subject: Subject) -> Outcome:
    """Export forward, run what comes out at other values, and compare."""
    reason = why_not_transformable(subject) or why_not_traced(subject, RULE.code)
    if reason:
        return skipped(reason)
    point = nearby_point(subject) or sample_point(subject)
    with quiet_compilers():
        findings, notes = _tried(subject, point)
    if findings:
        return judged_by(findings[:1], "; ".join(notes))
    return Outcome(
        "skipped" if len(notes) == len(_programs(subject)) else "pass", note="; ".join(notes)
    )


def _programs(subject: Subject) -> dict[str, Exporter]:
    """Name of a kind of program → what makes one."""
    found: dict[str, Exporter] = {"torch.export": exported}
    if subject.op.function is None and not subject.run.nodes:
        # A trace holds a Python Function as a call of Python, which may end the process.
        found[TRACE] = traced
    if RULE.code in (subject.settings.select or ()):
        found["ONNX"] = as_onnx
    return found


def _tried(subject: Subject, point: Point) -> tuple[list[Finding], list[str]]:
    """Findings, and what could not be compared."""
    problem = subject.problem
    module = ForwardModule(problem)
    findings, notes = [], []
    for name, export in _programs(subject).items():
        problem.forward_calls += 1
        try:
            with common_random_numbers(problem.seed):
                program = export(module, module.tensors(problem, problem.values()))
            with common_random_numbers(problem.seed), torch.no_grad():
                got = list(program(*module.tensors(problem, point.values)))
            _require_values(got)
        except Exception as error:
            notes.append(f"{name}: {error_line(error)}")
            continue
        found = _difference(subject, got, point)
        if found is not None and is_random(problem):
            notes.append(
                f"{name}: forward draws random numbers, and the program draws different ones"
            )
        elif found is not None:
            findings.append(_finding(subject, found, name))
    return findings, notes


def _require_values(outputs: Sequence[Any]) -> None:
    """Raise what reading them raises: a program may keep a tensor of a class of the op's own as a
    constant, and what it was traced with, which has no values, inside of that."""
    for value in outputs:
        if isinstance(value, torch.Tensor) and type(value) is not torch.Tensor:
            torch.equal(value, value)


def _difference(subject: Subject, got: list[Any], point: Point) -> Difference | None:
    for item, value in zip(subject.run.outputs, got, strict=False):
        found = output_difference(subject, item.name, value, point.outputs[item.name])
        if found is not None:
            return found
    return None


def _finding(subject: Subject, found: Difference, where: str) -> Finding:
    deprecated = where == TRACE
    return difference_finding(
        subject,
        RULE,
        f"`{found.name}` differs in {where}",
        found,
        is_output=True,
        severity="info" if deprecated else None,
        cause="exported",
        cause_text="exported: the op itself returns different values",
        help="TorchScript is deprecated: use torch.export" if deprecated else _HELP,
    )
