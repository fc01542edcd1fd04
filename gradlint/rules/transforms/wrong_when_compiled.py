"""Wrong under torch.compile.

What it finds
-------------
An op that gives different values once it is compiled: outputs and gradients through `torch.compile`
(Dynamo and AOTAutograd, run operator by operator, graph breaks allowed), on non-contiguous inputs,
at the sample and, with the same compiled code, at values nearby; and gradients through compiled
autograd. A registered operator also goes through `torch.library.opcheck`: schema, autograd
registration, fake kernel. A clear refusal is not reported as a fault. Ops that call more than a
hundred operators take long to trace: they are compiled only where this rule is selected by its
code.

Cost: 6 forward and 5 backward calls; in addition, opcheck calls a registered operator 8 times.

Why it matters
--------------
The compiler trusts what an op declares: its schema, its fake kernel, and that its results depend on
its inputs only. A mutation that is not declared is silently dropped.

Bad
---
```python
import torch

@torch.library.custom_op("gl903::double_", mutates_args=())
def double_(x: torch.Tensor) -> None:
    x.mul_(2)

double_.register_fake(lambda x: None)

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.sin()
        double_(y)
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x.cos()

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, -1.5, 2.5]),)
```

Good
----
```python
import torch

@torch.library.custom_op("gl903::double_", mutates_args={"x"})
def double_(x: torch.Tensor) -> None:
    x.mul_(2)

double_.register_fake(lambda x: None)

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.sin()
        double_(y)
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x.cos()

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, -1.5, 2.5]),)
```

How it looks
------------
```text
mylib/ops.py:9:1  GL903  `output` differs under torch.compile
   9 | class Op(torch.autograd.Function):
  cause      compiled: the same call without the compiler gives different values
             index      returned     expected       error
             [1]       -0.997495    -1.994990     1.0e+00
  help       declare in mutates_args what an operator writes to
```

References
----------
- Custom operators and opcheck: https://docs.pytorch.org/docs/stable/library.html
- A dropped mutation: KellerJordan/modded-nanogpt#83; a wrong fake kernel: NVIDIA/cuEquivariance#223
"""

from __future__ import annotations

import torch

from gradlint.base.text import error_line
from gradlint.experiments.baseline_comparison import Difference, make_baseline
from gradlint.experiments.device.interpreted_kernels import raised_by_interpreter
from gradlint.experiments.forward_operators import is_random, why_not_traced
from gradlint.experiments.outcomes import skipped
from gradlint.experiments.preconditions import why_not_transformable
from gradlint.experiments.subject import Subject
from gradlint.experiments.transforms.compiled import (
    Layout,
    compiled,
    compiled_backward,
    differences_from,
    opcheck,
    usable_layout,
    why_not_compiled,
    without_collecting,
)
from gradlint.experiments.transforms.reference_points import (
    Point,
    nearby_point,
    quiet_compilers,
    sample_point,
)
from gradlint.experiments.transforms.refusals import is_refusal
from gradlint.experiments.transforms.transform_findings import difference_finding, raised_outcome
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of
from gradlint.trace.altered import pull_altered
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem

RULE = rule_of(__name__)

_HELP = (
    "declare in mutates_args what a registered operator writes to, let its fake kernel return the "
    "shapes, dtypes and strides of the real one, and let forward and backward depend on nothing "
    "but their arguments"
)


def probe(subject: Subject) -> Outcome:
    """Compare compiled calls with plain ones."""
    with quiet_compilers():
        reason = why_not_transformable(subject) or why_not_compiled()
        baseline = subject.once(make_baseline)
        if not reason and baseline is not None and not baseline.repeatable:
            reason = "identical calls differ even without compiling: see GL606"
        reason = reason or why_not_traced(subject, RULE.code)
        if reason:
            return skipped(reason)
        findings = _checked(subject) if subject.op.kind == "library" else []
        if any(finding.severity == "error" for finding in findings):
            return Outcome("fail", findings)
        with without_collecting():
            outcome = _compared(subject)
    outcome.findings[:0] = findings
    return outcome


def _compared(subject: Subject) -> Outcome:
    start, other, layout = sample_point(subject), nearby_point(subject), usable_layout(subject)
    nodes = subject.run.nodes
    try:
        with compiled(subject.problem) as (problem, graphs):
            findings = _differences(subject, problem, start, layout, "torch.compile")
            traced = graphs.functions == len(nodes)
            if not findings and other is not None:
                where = "torch.compile at values other than those it was compiled with"
                findings = _differences(subject, problem, other, layout, where)
        if not findings and nodes:
            findings = _through_compiled_autograd(subject, traced=traced)
    except OpRaised as raised:
        return _raised(subject, raised.error)
    except Exception as error:
        return _raised(subject, error)
    if findings and is_random(subject.problem):
        return skipped("forward draws random numbers: compiled, it draws different ones")
    if findings:
        return Outcome("fail", findings)
    if not graphs.count:
        return skipped("torch.compile runs this op unchanged: nothing is compiled")
    return Outcome("pass")


def _differences(
    subject: Subject, problem: Problem, point: Point, layout: Layout | None, where: str
) -> list[Finding]:
    """What differs between ``problem`` and ``point``."""
    vs = subject.run.cotangents
    got = pull_altered(problem, vs, values=point.values, inputs=layout)
    return [_finding(subject, *item, where) for item in differences_from(subject, got, point)]


def _through_compiled_autograd(subject: Subject, *, traced: bool) -> list[Finding]:
    problem = subject.problem
    leaves, outputs = problem.linearize()
    with compiled_backward(traced=traced):
        gradients = problem.pull_from(outputs, leaves, subject.run.cotangents)
    summed = [_as_the_engine(*pair) for pair in zip(gradients, leaves, strict=True)]
    found = differences_from(subject, ([], summed), sample_point(subject))
    return [_finding(subject, *item, "compiled autograd") for item in found]


def _as_the_engine(gradient: torch.Tensor | None, x: torch.Tensor) -> torch.Tensor | None:
    """Summed over the axes that ``x`` was broadcast along: compiled autograd of torch 2.6 leaves
    out this step of the engine, which is not the op's fault."""
    if gradient is None or gradient.shape == x.shape:
        return gradient
    try:
        return gradient.sum_to_size(x.shape)
    except RuntimeError:  # not a broadcast of its shape
        return gradient


def _finding(subject: Subject, found: Difference, is_output: bool, where: str) -> Finding:
    what = f"`{found.name}`" if is_output else f"gradient for `{found.name}`"
    return difference_finding(
        subject,
        RULE,
        f"{what} differs under {where}",
        found,
        is_output=is_output,
        cause="compiled",
        cause_text="compiled: the same call without the compiler gives different values",
        help=_HELP,
    )


def _checked(subject: Subject) -> list[Finding]:
    """What opcheck says of a registered operator."""
    failed = opcheck(subject)
    if failed is None or raised_by_interpreter(failed.error):
        return []
    return [
        subject.finding(
            RULE,
            "no fake kernel is registered: torch.compile can't trace this operator"
            if failed.absent
            else f"opcheck: {failed.meaning}",
            severity="info" if failed.absent else None,
            cause=failed.test.removeprefix("test_"),
            cause_text=error_line(failed.error),
            evidence={"test": failed.test, "also_failing": failed.others},
            help=_HELP,
        )
    ]


def _raised(subject: Subject, error: BaseException) -> Outcome:
    """It is not the op's fault where the compiler gives up; it is where compiled code raises."""
    if raised_by_interpreter(error):
        return skipped(
            "torch.compile can't trace Triton's interpreter, which runs in the kernels' place here"
        )
    if type(error).__module__.startswith("torch._dynamo") or is_refusal(error):
        keep_out = (
            "keep it out of compiled regions with torch.compiler.disable, or make it a registered "
            "operator with a fake kernel (torch.library.custom_op)"
        )
        gives_up = "torch.compile gives up"
        return raised_outcome(
            subject, RULE, error, refused=gives_up, raises="", help=keep_out, place=None
        )
    raises = "raises under torch.compile"
    return raised_outcome(subject, RULE, error, refused="", raises=raises, help=_HELP)
