"""Wrong gradient dtype.

What it finds
-------------
Backward returned a gradient in a different dtype than its input. A less precise one (or an integer
or boolean one) is a warning: digits are lost before the engine casts back. It is only a note where
forward's output is no more precise. A wider one is a note: the engine rounds it. A complex one for
a real input is an error: the engine rejects it. (Inputs that gradlint guesses are complex then,
unless the documentation says that they are real.)

Where forward takes several tensors, mixed dtypes are tried too: the first tensor coarser than the
others, and the others coarser than the first. Where forward accepts them and backward raises, or a
gradient is coarser than its input, this is a note. Cost: up to 4 forward and 2 backward calls.

Why it matters
--------------
The engine casts silently, so nothing shows but the loss of digits: float32 computations inside a
float64 operator make second-derivative checks fail, and `float16` gradients of float32 weights
overflow.

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
        return (grad_output * x.cos()).half()

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
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return (grad_output * x.cos()).to(x.dtype)

    @staticmethod
    def sample_inputs():
        return (torch.tensor([1.0, -2.0, 3.0]),)
```

How it looks
------------
```text
mylib/ops.py:12:16  GL203  gradient for `x` is float16, its input float32
  12 |         return (grad_output * x.cos()).half()
     |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ returned for `x`
  help       compute it in float32, or say that the op takes float16 only
```

References
----------
- Reports of gradients in the wrong dtype: NVIDIA/apex#1188, linkedin/Liger-Kernel#1283
- `validate_outputs` in torch/csrc/autograd/engine.cpp
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from gradlint.base.text import error_line
from gradlint.experiments.outcomes import any_defect, skipped
from gradlint.experiments.returned_gradients import ReturnedGradient, backward_place, returned_place
from gradlint.experiments.shape.compared_gradients import engine_finding, returned_tensors
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding, Severity
from gradlint.model.rule import Outcome
from gradlint.model.sample import Sample, map_tensors
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)

#: Dtype → the coarser one that is mixed with it.
COARSER = {torch.float64: torch.float32, torch.float32: torch.bfloat16}


def probe(subject: Subject) -> Outcome:
    """Compare the dtype of every returned gradient with that of its input."""
    items, note = returned_tensors(subject)
    findings = [
        _finding(subject, item, severity)
        for item in items
        if item.meta is not None
        and (severity := _severity(item, item.value.dtype, item.meta.dtype)) is not None
    ]
    if not findings:
        text = "a gradient in a dtype that the engine rejects"
        findings = engine_finding(subject, RULE, "invalid-gradient-dtype", text)
    if not any_defect(findings):
        findings += _when_mixed(subject, {finding.input or "" for finding in findings})
    if any_defect(findings):
        return Outcome("fail", findings)
    return skipped(note) if note else Outcome("pass", findings)


def _when_mixed(subject: Subject, reported: set[str]) -> list[Finding]:
    """The first finding that shows only with inputs of mixed dtypes."""
    if subject.run.error is not None or subject.problem.has_sparse_inputs:
        return []
    for words, other in mixed(subject):
        error = other.run.error
        subject.problem.forward_calls += other.problem.forward_calls
        subject.problem.backward_calls += other.problem.backward_calls
        if error is not None:
            if error.phase == "backward":
                return [_raised(subject, other, words)]
            continue  # refusing is fine
        for item in returned_tensors(other)[0]:
            severity = item.meta and _severity(item, item.value.dtype, item.meta.dtype)
            if severity in ("error", "warning") and item.name not in reported:
                # Results computed from the coarser input are no more precise than it.
                floating = item.value.is_floating_point()
                return [_finding(other, item, "info" if floating else severity, words)]
    return []


def _raised(subject: Subject, other: Subject, words: str) -> Finding:
    error = other.run.error
    assert error is not None
    node = next((node for node in other.run.nodes if node.raised is not None), None)
    return subject.finding(
        RULE,
        f"backward raises {words}, which forward accepts: {error_line(error.error)}",
        place=backward_place(node) if node is not None else None,
        evidence={"error": error_line(error.error)},
        grounds=subject.grounds(where="mixed-dtypes", silent=False),
        help="cast in backward as forward does, and return each gradient in the dtype of its "
        "input; or let forward refuse inputs of different dtypes",
    )


def _severity(item: ReturnedGradient, have: torch.dtype, want: torch.dtype) -> Severity | None:
    """None where the engine's cast loses no precision that the caller may expect."""
    if have == want:
        return None
    if not (have.is_floating_point or have.is_complex):
        return "warning"
    if have.is_complex and not want.is_complex:
        return "error"
    # A real gradient of a complex input is right where the derivative is real: only the precision
    # of its parts counts.
    if torch.finfo(have).eps > torch.finfo(want).eps:
        return "info" if _coarsest(item) >= torch.finfo(have).eps else "warning"
    return "info" if torch.finfo(have).eps < torch.finfo(want).eps else None


def _coarsest(item: ReturnedGradient) -> float:
    """The largest epsilon among the incoming gradients, which have the dtypes of the outputs."""
    found = [
        torch.finfo(value.dtype).eps
        for value in item.node.grad_outputs
        if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())
    ]
    return max(found, default=0.0)


def _finding(
    subject: Subject, item: ReturnedGradient, severity: Severity, condition: str = ""
) -> Finding:
    assert item.meta is not None
    have = str(item.value.dtype).removeprefix("torch.")
    want = str(item.meta.dtype).removeprefix("torch.")
    if severity == "info" and _coarsest(item) >= torch.finfo(item.value.dtype).eps:
        advice = f"forward returns {have} too, so no digits are lost here; if the op is meant to "
        advice += f"work in {want}, keep the dtype of the input in both"
    elif severity == "info":
        advice = f"the engine rounds it to {want}; .to({want}) in backward makes that explicit"
    elif severity == "error":
        advice = "the gradient of a real input is real: return its .real"
    else:
        advice = (
            f"compute it in {want}; where a kernel supports {have} only, let forward refuse {want}"
        )
    return subject.finding(
        RULE,
        f"gradient for `{item.name}` is {have}, its input {want}{condition and f' ({condition})'}",
        severity=severity,
        input=item.name,
        place=returned_place(item),
        evidence={"returned_dtype": have, "input_dtype": want},
        help=advice,
    )


def mixed(subject: Subject) -> Iterator[tuple[str, Subject]]:
    """The op with its first differentiable tensor in a coarser dtype, then with all others in it,
    each with a description. Nothing where there are not two tensors of one dtype."""
    if subject.op.module is not None:
        return
    tensors = {id(t): (name, t) for name, t in subject.sample.named_tensors(subject.op.signature)}
    differentiable = [
        (key, name, tensor)
        for key, (name, tensor) in tensors.items()
        if tensor.requires_grad and tensor.layout == torch.strided and tensor.dtype in COARSER
    ]
    dtypes = {tensor.dtype for _, _, tensor in differentiable}
    if len(differentiable) < 2 or len(dtypes) != 1:
        return
    wide = dtypes.pop()
    for chosen in (differentiable[:1], differentiable[1:]):
        keys = {key for key, _, _ in chosen}
        sample = _converted(subject.sample, keys, COARSER[wide])
        names = ", ".join(f"`{name}`" for _, name, _ in chosen)
        low = str(COARSER[wide]).removeprefix("torch.")
        words = f"with {names} in {low} and the others in {str(wide).removeprefix('torch.')}"
        found = Subject(subject.op, sample, subject.settings)
        found.problem.preserve_state = subject.problem.preserve_state
        yield words, found


def _converted(sample: Sample, keys: set[int], dtype: torch.dtype) -> Sample:
    def convert(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in keys:
            return tensor
        return tensor.detach().to(dtype).requires_grad_(tensor.requires_grad)

    args, kwargs = map_tensors((sample.args, sample.kwargs), convert)
    return replace(sample, args=args, kwargs=kwargs)
