"""Tensor-like mishandled.

What it finds
-------------
An op that returns different values, or silently loses the gradient, when it receives tensor-likes
in place of tensors. Two kinds are tried: a subclass of Tensor and, for callables and modules, a
wrapper that is not a Tensor and defines `__torch_function__`. An op that raises refuses clearly,
which is not reported. Where only the type is lost, so that plain tensors come back, a note says so.
PyTorch passes a wrapper to `Function.apply` like any other object; the op is not blamed for what
that loses.

Cost: 1 forward and 1 backward call for each of the two.

Why it matters
--------------
Tensors with units, names or a structure (diagonal, low rank, nested) are subclasses or wrappers. An
op that converts what it does not know keeps training, but with zero gradients, or as if the
structure did not exist.

Bad
---
```python
import torch

class Op(torch.nn.Module):
    def forward(self, x):
        if type(x) is not torch.Tensor:
            x = torch.tensor(x.tolist(), dtype=x.dtype)
        return x.sin()

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, -1.5, 2.5]),)
```

Good
----
```python
import torch

class Op(torch.nn.Module):
    def forward(self, x):
        if not isinstance(x, torch.Tensor) and not torch.overrides.is_tensor_like(x):
            raise TypeError(f"expected a tensor, got {type(x).__name__}")
        return x.sin()

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, -1.5, 2.5]),)
```

How it looks
------------
```text
mylib/ops.py:3:1  GL906  a subclass of Tensor loses its gradient for `x`
   3 | class Op(torch.nn.Module):
  cause      tensor-like: a plain tensor gives a different result
  help       test with isinstance, not by type, and convert nothing that carries a gradient
```

References
----------
- Extending torch with `__torch_function__`: https://docs.pytorch.org/docs/stable/notes/extending.html
"""

from __future__ import annotations

from gradlint.base.text import error_line
from gradlint.experiments.baseline_comparison import Difference
from gradlint.experiments.outcomes import any_defect, skipped
from gradlint.experiments.preconditions import why_not_transformable
from gradlint.experiments.subject import Subject
from gradlint.experiments.transforms.reference_points import (
    gradient_difference,
    output_difference,
    quiet_compilers,
    sample_point,
)
from gradlint.experiments.transforms.tensor_likes import Subclass, TensorLikeCalls, Wrapper
from gradlint.experiments.transforms.transform_findings import difference_finding
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of
from gradlint.trace.op_io import OpRaised

RULE = rule_of(__name__)

_HELP = (
    "test with isinstance(x, torch.Tensor) or torch.overrides.is_tensor_like, not by type, and "
    "convert nothing that may carry a gradient; delegate with handle_torch_function, or raise "
    "TypeError"
)


def probe(subject: Subject) -> Outcome:
    """Pass the differentiable inputs as tensor-likes, and compare."""
    reason = why_not_transformable(subject)
    if not reason and len(subject.problem.parameters) == len(subject.problem.inputs):
        reason = "no argument requires grad"
    if reason:
        return skipped(reason)
    kinds: dict[str, type] = {"a subclass of Tensor": Subclass}
    if subject.op.function is None:
        kinds["a wrapper with __torch_function__"] = Wrapper
    findings: list[Finding] = []
    notes = []
    with quiet_compilers():
        for words, like in kinds.items():
            found, note = _fed(subject, like, words)
            findings += found
            notes += [f"{words}: {note}"] if note else []
            if any_defect(findings):
                return Outcome("fail", findings, note="; ".join(notes))
    return Outcome("pass", findings[:1], note="; ".join(notes))


def _fed(subject: Subject, like: type, words: str) -> tuple[list[Finding], str]:
    """Findings for one kind of tensor-like, or why there is nothing to say."""
    fed = TensorLikeCalls(subject.problem, like)
    try:
        return _judged(subject, fed, words)
    except OpRaised as raised:
        return [], f"refused: {error_line(raised.error)}"
    finally:
        subject.problem.forward_calls += fed.problem.forward_calls
        subject.problem.backward_calls += fed.problem.backward_calls


def _judged(subject: Subject, fed: TensorLikeCalls, words: str) -> tuple[list[Finding], str]:
    point = sample_point(subject)
    leaves = fed.problem.leaves()
    outputs = fed.problem.connect(leaves)
    for item in outputs:
        if item.name in point.outputs:
            found = output_difference(
                subject, item.name, item.value.detach(), point.outputs[item.name]
            )
            if found is not None:
                text = f"{words} gives a different `{item.name}`"
                return [_finding(subject, text, found, is_output=True)], ""
    if len(outputs) != len(point.outputs):
        return [], "different outputs"
    gradients = fed.problem.pull_from(outputs, leaves, subject.run.cotangents)
    count = len(leaves) - len(subject.problem.parameters)
    pairs = zip(gradients[:count], point.gradients, strict=False)
    wrong = [gradient_difference(subject, k, got, old) for k, (got, old) in enumerate(pairs)]
    lost = [d for d in wrong if d is not None]
    if lost and subject.run.nodes and fed.is_wrapper and not fed.dispatched:
        return [], "PyTorch passes it to Function.apply like any object: no gradient"
    findings = [
        _finding(
            subject,
            f"{words} loses its gradient for `{d.name}`"
            if d.kind == "missing"
            else f"{words} gets a different gradient for `{d.name}`",
            d,
            is_output=False,
        )
        for d in lost
    ]
    if not findings and not fed.kept:
        findings = [_type_lost(subject, words)]
    return findings, ""


def _finding(subject: Subject, message: str, found: Difference, *, is_output: bool) -> Finding:
    return difference_finding(
        subject,
        RULE,
        message,
        found,
        is_output=is_output,
        cause="tensor-like",
        cause_text="tensor-like: a plain tensor gives a different result",
        help=_HELP,
    )


def _type_lost(subject: Subject, words: str) -> Finding:
    return subject.finding(
        RULE,
        f"{words} comes back as a plain tensor",
        severity="info",
        cause="type-lost",
        cause_text="type-lost: values and gradients are right",
        help=_HELP,
    )
