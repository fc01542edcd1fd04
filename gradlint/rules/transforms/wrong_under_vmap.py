"""Wrong under vmap.

What it finds
-------------
An op that gives different values under `torch.func.vmap` than in a loop over the batch. Two samples
are batched: first with all inputs batched (the batch axis of the first one last) and the gradients
of the batched call; then with per-sample gradients (`vmap` of `vjp`), where the first of several
inputs is shared (`in_dims=None`). The rule runs on ops that support vmap: callables, modules,
registered ops, and Functions with `generate_vmap_rule = True` or a `vmap` static method. A clear
refusal is not reported as a fault.

Cost: 4 forward and 4 backward calls; 3 and 3 where there is one input.

Why it matters
--------------
Per-sample gradients, ensembles, Jacobians and Hessians are computed with vmap. A rule that loses
track of the batch axis returns wrong numbers of the right shape.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.softmax(-1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return y * (grad_output - (y * grad_output).sum(-1, keepdim=True))

    @staticmethod
    def vmap(info, in_dims, x):
        return Op.apply(x), in_dims[0]

    @staticmethod
    def sample_inputs():
        return (torch.tensor([[0.5, -1.5, 2.5], [1.0, 0.2, -0.3]]),)
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.softmax(-1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return y * (grad_output - (y * grad_output).sum(-1, keepdim=True))

    @staticmethod
    def vmap(info, in_dims, x):
        return Op.apply(x.movedim(in_dims[0], 0)), 0

    @staticmethod
    def sample_inputs():
        return (torch.tensor([[0.5, -1.5, 2.5], [1.0, 0.2, -0.3]]),)
```

How it looks
------------
```text
mylib/ops.py:18:5  GL901  `output` is wrong under vmap (in_dims=(2,))
  18 |     def vmap(info, in_dims, x):
  cause      vmap: a loop over the batch gives different values
             index      returned     expected       error
             [0, 0, 2] +0.612340    +0.866036     2.5e-01
  help       move the batch axis of every input to the front …
```

References
----------
- vmap of custom functions: https://docs.pytorch.org/docs/stable/notes/extending.func.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gradlint.base.text import error_line
from gradlint.experiments.baseline_comparison import Difference
from gradlint.experiments.outcomes import skipped
from gradlint.experiments.preconditions import why_not_transformable
from gradlint.experiments.subject import Subject
from gradlint.experiments.transforms.pure_calls import differentiable_names, pure_function
from gradlint.experiments.transforms.reference_points import (
    Point,
    batched_difference,
    gradient_difference,
    in_slice,
    nearby_point,
    point_at,
    quiet_compilers,
    sample_point,
)
from gradlint.experiments.transforms.refusals import functions_without, is_refusal, python_functions
from gradlint.experiments.transforms.transform_findings import difference_finding, raised_outcome
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of
from gradlint.targets import source
from gradlint.trace.op_io import OpRaised

RULE = rule_of(__name__)

_HELP = (
    "move the batch axis of every input to the front (in_dims says where it is; None means that "
    "the input has no such axis), and return out_dims that say where it is in the outputs; or "
    "replace the vmap method with generate_vmap_rule = True"
)


def probe(subject: Subject) -> Outcome:
    """Compare vmap over two samples with a loop over them."""
    reason = why_not_transformable(subject) or _unsupported(subject)
    if reason:
        return skipped(reason)
    start, other = sample_point(subject), nearby_point(subject)
    if other is None:
        return skipped("no second sample to batch: forward raises near this one")
    try:
        with quiet_compilers():
            findings = _batched(subject, [start, other])
            several = len(start.values) > 1
            shared = point_at(subject, [start.values[0], *other.values[1:]]) if several else other
            if not findings and shared is not None:
                findings = _per_sample(subject, [start, shared], shares_first=several)
    except OpRaised as raised:
        return _raised(subject, raised.error)
    except Exception as error:
        return _raised(subject, error)
    return Outcome("fail" if findings else "pass", findings)


def _unsupported(subject: Subject) -> str:
    lacking = functions_without(subject, "generate_vmap_rule", "vmap")
    names = ", ".join(f"`{name}`" for name in lacking)
    return f"{names}: neither generate_vmap_rule nor a vmap method" if names else ""


def _batched(subject: Subject, points: list[Point]) -> list[Finding]:
    """Outputs of the batched call, and its gradients."""
    problem = subject.problem
    dims = [0 for _ in points[0].values]
    dims[0] = points[0].values[0].dim()
    leaves = [
        torch.stack([point.values[k] for point in points], dim).requires_grad_()
        for k, dim in enumerate(dims)
    ]
    call = torch.func.vmap(pure_function(subject), in_dims=tuple(dims))
    outputs = call(*leaves)
    names = differentiable_names(subject)
    where = f"under vmap (in_dims={tuple(dims)})"
    wrong = _wrong_outputs(subject, names, outputs, points, where)
    if wrong:
        return wrong
    vs = [subject.run.cotangents[name].expand_as(o) for name, o in zip(names, outputs, strict=True)]
    connected = [(o, v) for o, v in zip(outputs, vs, strict=True) if o.requires_grad]
    gradients = problem.backward([o for o, _ in connected], leaves, [v for _, v in connected])
    moved = [
        None if g is None else g.movedim(dim, 0) for g, dim in zip(gradients, dims, strict=True)
    ]
    return _wrong_gradients(subject, moved, points, where)


def _per_sample(subject: Subject, points: list[Point], *, shares_first: bool) -> list[Finding]:
    """Gradients of every sample by itself; the first input is shared by all of them."""
    call, names = pure_function(subject), differentiable_names(subject)
    vs = tuple(subject.run.cotangents[name] for name in names)

    def differentiated(*passed: torch.Tensor) -> Any:
        subject.problem.backward_calls += 1
        outputs, pull, *_ = torch.func.vjp(call, *passed)
        return outputs, pull(vs)

    dims = [None if shares_first and k == 0 else 0 for k in range(len(points[0].values))]
    given = [
        points[0].values[k] if dim is None else torch.stack([p.values[k] for p in points])
        for k, dim in enumerate(dims)
    ]
    outputs, gradients = torch.func.vmap(differentiated, in_dims=tuple(dims))(*given)
    where = f"under vmap of vjp (in_dims={tuple(dims)})"
    return _wrong_outputs(subject, names, outputs, points, where) or _wrong_gradients(
        subject, list(gradients), points, where
    )


def _wrong_outputs(
    subject: Subject,
    names: list[str],
    outputs: Sequence[torch.Tensor],
    points: list[Point],
    where: str,
) -> list[Finding]:
    for name, output in zip(names, outputs, strict=True):
        found = batched_difference(subject, name, output, points)
        if found is not None:
            return [_finding(subject, f"`{name}` is wrong {where}", found, is_output=True)]
    return []


def _wrong_gradients(
    subject: Subject, batched: list[torch.Tensor | None], points: list[Point], where: str
) -> list[Finding]:
    findings = []
    for position, gradient in enumerate(batched):
        for number, point in enumerate(points):
            got = None if gradient is None else gradient[number].detach()
            found = gradient_difference(subject, position, got, point.gradients[position])
            if found is not None:
                text = f"gradient for `{found.name}` is wrong {where}"
                findings.append(_finding(subject, text, in_slice(found, [number]), is_output=False))
                break
    return findings


def _finding(subject: Subject, message: str, found: Difference, *, is_output: bool) -> Finding:
    function = subject.op.function
    place = source.method(function, "vmap") if function is not None else None
    return difference_finding(
        subject,
        RULE,
        message,
        found,
        is_output=is_output,
        cause="vmap",
        cause_text="vmap: a loop over the batch gives different values",
        place=place if place is not None and place[0] is not None else None,
        help=_HELP,
    )


def _raised(subject: Subject, error: BaseException) -> Outcome:
    """Declared support is refused (info), or fails in the op's own vmap method (error)."""
    line = error_line(error)
    known = python_functions(subject)
    if not known or "randomness" in line:
        return skipped(f"vmap is refused: {line}")
    written = len(functions_without(subject, "vmap")) < len(known)
    refused = isinstance(error, NotImplementedError) if written else is_refusal(error)
    use_torch = (
        "leave generate_vmap_rule out, or use PyTorch operators only in forward and backward"
    )
    return raised_outcome(
        subject,
        RULE,
        error,
        refused="vmap is declared but refused" if refused else "",
        raises="raises under vmap",
        help=use_torch if refused else _HELP,
    )
