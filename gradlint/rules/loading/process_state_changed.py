"""Process state changed.

What it finds
-------------
Forward or backward changes the process it runs in: the default dtype or device, the grad or
inference mode, autocast, cuDNN's flags, the seed of the random generators, the number of threads,
the working directory, the environment, warning filters, the standard streams; it leaves a
`TorchFunctionMode`, a `TorchDispatchMode`, hooks for saved tensors or a tracing function in place,
replaces functions of torch, forks, leaves threads, processes or files open, or floods the terminal.
What only the first call does, such as importing a library, is no fault.

An op whose code replaces a function that gradlint itself calls, or takes modules out of
`sys.modules`, can't be judged: that is an error, and names what was replaced.

Why it matters
--------------
Whatever runs next pays for it: a model built after the call is in another precision, data loading
is no longer random, a log is cut off. gradlint puts the state back between calls, so that neither
its other rules nor the next operator are affected; a training run does not.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        torch.set_default_dtype(torch.float16)
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2

    @staticmethod
    def sample_inputs():
        return (torch.ones(3),)
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * torch.tensor(2, dtype=x.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2

    @staticmethod
    def sample_inputs():
        return (torch.ones(3),)
```

How it looks
------------
```text
mylib/ops.py:6:5  GL008 warning  forward changes the process: number of threads: 2 → 1
  help       give dtype, device and generator to the calls that need them
```

References
----------
- torch.set_default_dtype: https://docs.pytorch.org/docs/stable/generated/torch.set_default_dtype.html
- Reproducibility: https://docs.pytorch.org/docs/stable/notes/randomness.html
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gradlint.experiments.loading.running_findings import running_finding, where
from gradlint.model.report import Excerpt, Finding, Location
from gradlint.model.rule import Outcome
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import rule_of
from gradlint.targets import source

if TYPE_CHECKING:
    import torch

    from gradlint.experiments.subject import Subject
    from gradlint.trace.op_io import Output
    from gradlint.trace.problem import Problem

RULE = rule_of(__name__)

#: Names that a message lists.
MOST_NAMES = 4

#: Calls that must all leave a file descriptor open (heuristic: caches and pools open a few, once).
CALLS = 3


def probe(subject: Subject) -> Outcome:
    """Call forward and backward once each and compare the process before and after.

    These are not the first calls: what those import or fill for good is no fault.
    """
    import torch

    from gradlint.experiments.loading.process_effects import observed_effects, silence
    from gradlint.trace.global_state import preserved_state
    from gradlint.trace.op_io import OpRaised

    problem = subject.problem
    findings: list[Finding] = []
    leaves: list[torch.Tensor] = []
    outputs: list[Output] = []
    with preserved_state():
        if subject.run.error is not None:
            return Outcome("skipped", note=f"{subject.run.error.phase} raised")
    try:
        with observed_effects(problem.seed) as forward:
            leaves, outputs = problem.linearize()
        forward.texts += problem.mode_changes
        if forward.opened > 0:
            forward.texts += _left_open(problem)
        findings += _finding(subject, "forward", forward.texts)
        if forward.flooded:
            silence()
        chosen = [output for output in outputs if output.differentiable]
        if chosen:
            cotangents = [torch.ones_like(output.value) for output in chosen]
            torch.default_generator.manual_seed(problem.seed)
            with observed_effects(problem.seed) as backward:
                problem.backward(chosen, leaves, cotangents)
            if backward.opened > 0 and forward.opened <= 0:
                backward.texts += _left_open(problem)
            findings += _finding(subject, "backward", backward.texts)
            if backward.flooded:
                silence()
    except OpRaised as raised:
        if not findings:
            return Outcome("skipped", note=f"{raised.phase} raised")
    # From here on the state is put back after every call, not after every rule.
    problem.preserve_state = bool(findings)
    return Outcome("fail" if findings else "pass", findings)


def _left_open(problem: Problem) -> list[str]:
    """Descriptors that every call leaves open, in words: what is opened once is a cache, and what
    goes with the graph is closed."""
    import torch

    from gradlint.experiments.loading.process_effects import open_descriptors

    counts = []
    for _ in range(CALLS + 1):
        outputs = problem.linearize()[1]
        problem.pull({o.name: torch.ones_like(o.value) for o in outputs if o.differentiable})
        del outputs
        gc.collect()
        counts.append(open_descriptors())
    if any(now <= before for before, now in pairwise(counts)):
        return []
    return ["a file descriptor is left open at every call"]


def _finding(subject: Subject, phase: str, texts: list[str]) -> list[Finding]:
    if not texts:
        return []

    thing = subject.op.function or subject.op
    return [
        subject.finding(
            RULE,
            f"{phase} changes the process: {'; '.join(texts)}",
            place=source.method(thing, phase),
            evidence={"phase": phase, "changes": texts},
            help="give dtype, device, generator and paths to the calls that need them, and leave "
            "the process as it was",
        )
    ]


def found(
    target: str,
    phase: str,
    settings: Settings,
    failure: dict[str, Any],
    *,
    rule: str | None = None,
    location: Location | None = None,
    excerpt: Excerpt | None = None,
    sample: str | None = None,
    output_tail: Sequence[str] = (),
    stack: Sequence[str] = (),
) -> Finding:
    """The finding that code of ``target`` replaced what gradlint calls, so that it failed.

    Args:
        phase: one of ``gradlint.ops.phase.PHASES``: the last that ran the user's code.
        failure: what came of it: ``type`` and ``text`` of the exception, and the names that were
            ``replaced``.
        rule: code of the check that was running, if any.
    """
    names = failure["replaced"]
    told = ", ".join(names[:MOST_NAMES]) + (" …" if len(names) > MOST_NAMES else "")
    finding = running_finding(
        RULE,
        target,
        f"code of the op replaces or removes {told}: gradlint failed {where(phase, rule)}",
        settings,
        location=location,
        excerpt=excerpt,
        evidence={
            "phase": phase,
            "rule": rule,
            "changes": list(names),
            "exception": failure["type"],
            "original": failure["text"],
            "traceback": list(stack),
            "output_tail": list(output_tail),
        },
        help="leave functions of libraries and `sys.modules` as they are: every other user of them "
        "in the process gets the replacement",
        sample=sample,
        select=rule or "",
    )
    finding.severity = "error"
    return finding
