"""Wrong under torch.func.

What it finds
-------------
An op whose outputs, gradients or second derivatives under `torch.func.vjp` differ from plain
autograd, or whose tangents under `torch.func.jvp` differ from plain forward mode. The rule runs on
ops that support it: callables, modules, registered ops, and Functions with a separate
`setup_context`. A clear refusal is not reported as a fault.

Cost: 2 forward and 4 backward calls; 2 more forwards where a Function defines jvp.

Why it matters
--------------
`torch.func` passes wrapped tensors to the op, for which `requires_grad`, `is_leaf` and whatever an
earlier call has stored mean something else. Hessians and meta-learning then use numbers that no
test of the plain op sees.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    aside = []

    @staticmethod
    def forward(x):
        Op.aside[:] = [x]
        return x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * Op.aside[0].cos()

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
    def forward(x):
        return x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.cos()

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, -1.5, 2.5]),)
```

How it looks
------------
```text
mylib/ops.py:3:1  GL902  second derivative for `x` differs under torch.func
   3 | class Op(torch.autograd.Function):
  cause      torch-func: plain autograd gives different values
             index      returned     expected       error
             [1]       +0.000000    +0.412118     4.1e-01
  help       let all that backward needs come from ctx.saved_tensors
```

References
----------
- `torch.func` and custom functions: https://docs.pytorch.org/docs/stable/notes/extending.func.html
"""

from __future__ import annotations

from typing import Any

import torch

from gradlint.base.text import error_line
from gradlint.experiments.baseline_comparison import Difference
from gradlint.experiments.forward_operators import is_random
from gradlint.experiments.outcomes import skipped
from gradlint.experiments.preconditions import why_not_transformable
from gradlint.experiments.subject import Subject
from gradlint.experiments.transforms.pure_calls import (
    differentiable_names,
    directions,
    plain_second_derivatives,
    pure_function,
)
from gradlint.experiments.transforms.reference_points import (
    gradient_difference,
    output_difference,
    quiet_compilers,
    sample_point,
)
from gradlint.experiments.transforms.refusals import functions_without, is_refusal, python_functions
from gradlint.experiments.transforms.transform_findings import difference_finding, raised_outcome
from gradlint.experiments.value.forward_mode import push_forward
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of
from gradlint.trace.op_io import OpRaised

RULE = rule_of(__name__)

_HELP = (
    "let backward and jvp take all they need from tensors saved in setup_context, and let forward "
    "depend on the values of its inputs only: not on requires_grad, is_leaf, data_ptr or what "
    "another call has stored"
)

_JVP = "jvp"


def probe(subject: Subject) -> Outcome:
    """Differentiate through torch.func, once and twice, and compare with plain autograd."""
    reason = why_not_transformable(subject)
    if not reason and (old := functions_without(subject, "setup_context")):
        names = ", ".join(f"`{name}`" for name in old)
        reason = f"{names}: torch.func needs a separate setup_context"
    if reason:
        return skipped(reason)
    try:
        with quiet_compilers():
            findings, note = _backward(subject)
            findings = findings or _forward(subject)
    except OpRaised as raised:
        return _raised(subject, raised.error)
    except Exception as error:
        return _raised(subject, error)
    # Random numbers may be drawn in another order or layout, unless the outputs are the same.
    if any(finding.output is not None for finding in findings) and is_random(subject.problem):
        return skipped("forward draws random numbers: torch.func draws different ones")
    return Outcome("fail" if findings else "pass", findings, note=note)


def _backward(subject: Subject) -> tuple[list[Finding], str]:
    """Differences of outputs, gradients or second derivatives: the first kind that occurs."""
    call, problem = pure_function(subject), subject.problem
    vjp: Any = torch.func.vjp  # its type does not know aux
    names = differentiable_names(subject)
    vs = tuple(subject.run.cotangents[name] for name in names)
    point = sample_point(subject)

    def gradients(*passed: torch.Tensor) -> Any:
        outputs, pull = vjp(call, *passed)
        problem.backward_calls += 1
        return pull(vs), outputs

    ws = directions(subject)
    plain, note = plain_second_derivatives(subject, ws)
    if plain is None:
        first, outputs = gradients(*point.values)
    else:
        first, pull, outputs = vjp(gradients, *point.values, has_aux=True)
    for name, output in zip(names, outputs, strict=True):
        found = output_difference(subject, name, output, point.outputs[name])
        if found is not None:
            text = f"`{name}` differs under torch.func"
            return [_finding(subject, text, found, is_output=True)], ""
    pairs = zip(first, point.gradients, strict=True)
    wrong = [gradient_difference(subject, k, got, old) for k, (got, old) in enumerate(pairs)]
    findings = [
        _finding(subject, f"gradient for `{d.name}` differs under torch.func", d, is_output=False)
        for d in wrong
        if d is not None
    ]
    if findings or plain is None:
        return findings, note
    problem.backward_calls += 1
    return _second(subject, list(pull(ws)), plain), ""


def _second(
    subject: Subject, got: list[torch.Tensor], plain: list[torch.Tensor | None]
) -> list[Finding]:
    pairs = zip(got, plain, strict=True)
    wrong = [gradient_difference(subject, k, value, old) for k, (value, old) in enumerate(pairs)]
    return [
        _finding(
            subject,
            f"second derivative for `{d.name}` differs under torch.func",
            d,
            is_output=False,
        )
        for d in wrong
        if d is not None
    ]


def _forward(subject: Subject) -> list[Finding]:
    """Differences of tangents, where a Function of the op defines jvp."""
    if not python_functions(subject) or functions_without(subject, _JVP):
        return []
    ws, names = directions(subject), differentiable_names(subject)
    values = tuple(subject.problem.values())
    try:
        expected = push_forward(subject.problem, values, ws, names)
    except OpRaised:
        return []  # GL403 reports it
    tangents = torch.func.jvp(pure_function(subject), values, ws)[1]
    for name, got, plain in zip(names, tangents, expected, strict=True):
        if plain is None:
            continue
        found = output_difference(subject, name, got, plain)
        if found is not None:
            text = f"tangent of `{name}` differs under torch.func.jvp"
            return [_finding(subject, text, found, is_output=True)]
    return []


def _finding(subject: Subject, message: str, found: Difference, *, is_output: bool) -> Finding:
    return difference_finding(
        subject,
        RULE,
        message,
        found,
        is_output=is_output,
        cause="torch-func",
        cause_text="torch-func: plain autograd gives different values",
        help=_HELP,
    )


def _raised(subject: Subject, error: BaseException) -> Outcome:
    """A separate setup_context declares support, which is refused (info) or fails (error)."""
    if not python_functions(subject):
        return skipped(f"torch.func is refused: {error_line(error)}")
    refused = "torch.func is refused" if is_refusal(error) else ""
    return raised_outcome(
        subject, RULE, error, refused=refused, raises="raises under torch.func", help=_HELP
    )
