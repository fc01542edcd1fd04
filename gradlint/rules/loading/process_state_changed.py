"""Process state changed.

What it finds
-------------
Forward or backward changes the process it runs in: the default dtype or device, grad or inference
mode, autocast, cuDNN's flags, the seed of the random generators, the number of threads, the working
directory, the environment, warning filters, the standard streams. Or it leaves a
`TorchFunctionMode`, a `TorchDispatchMode`, saved-tensor hooks or a tracing function in place,
replaces functions of torch, forks, leaves threads, processes or files open, or floods the terminal.
What only the first call does, such as importing a library, is not reported.

An op whose code replaces a function that gradlint itself calls, or removes modules from
`sys.modules`, can't be judged: this is an error that names what was replaced.

Why it matters
--------------
Whatever runs next is affected: a model built after the call has another precision, data loading is
no longer random, a log is cut off. gradlint restores the state between calls, so that neither its
other rules nor the next operator are affected; a training run does not.

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
from itertools import pairwise

import torch

from gradlint.experiments.loading.process_effects import (
    observed_effects,
    open_descriptors,
    silence,
)
from gradlint.experiments.outcomes import skipped
from gradlint.experiments.preconditions import why_not_run
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of
from gradlint.targets import source
from gradlint.trace.global_state import preserved_state
from gradlint.trace.op_io import OpRaised, Output
from gradlint.trace.problem import Problem

RULE = rule_of(__name__)


#: Calls that must all leave a file descriptor open (heuristic: caches and pools open a few, once).
CALLS = 3


def probe(subject: Subject) -> Outcome:
    """Call forward and backward once each and compare the process before and after.

    These are not the first calls: what those import or fill for good is no fault.
    """
    problem = subject.problem
    findings: list[Finding] = []
    leaves: list[torch.Tensor] = []
    outputs: list[Output] = []
    with preserved_state():
        reason = why_not_run(subject)
    if reason:
        return skipped(reason)
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
            return skipped(f"{raised.phase} raised")
    # From here on the state is put back after every call, not after every rule.
    problem.preserve_state = bool(findings)
    return Outcome("fail" if findings else "pass", findings)


def _left_open(problem: Problem) -> list[str]:
    """Descriptors that every call leaves open, in words: what is opened once is a cache, and what
    goes with the graph is closed."""
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
            help="give dtype, device, generator and paths to the calls that need them, and "
            "leave the process unchanged",
        )
    ]
