"""Process state changed.

What it finds
-------------
Forward or backward changes the process it runs in: the default dtype or device, the grad mode,
autocast, cuDNN's flags, the seed of the random generators, the number of threads, the working
directory, the environment, the standard streams; or it forks, leaves threads or processes running,
or floods the terminal.

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

from typing import TYPE_CHECKING

from gradlint.rules._rule import Outcome, Rule

if TYPE_CHECKING:
    import torch

    from gradlint.report import Finding
    from gradlint.rules._subject import Subject
    from gradlint.trace._problem import Output


def probe(subject: Subject) -> Outcome:
    """Call forward and backward once each and compare the process before and after."""
    import torch

    from gradlint.trace._effects import observed_effects, silence
    from gradlint.trace._problem import OpRaised

    problem = subject.problem
    findings: list[Finding] = []
    leaves: list[torch.Tensor] = []
    outputs: list[Output] = []
    try:
        with observed_effects(problem.seed) as forward:
            leaves, outputs = problem.linearize()
        forward.texts += problem.mode_changes
        findings += _finding(subject, "forward", forward.texts)
        if forward.flooded:
            silence()
        chosen = [output for output in outputs if output.differentiable]
        if chosen:
            cotangents = [torch.ones_like(output.value) for output in chosen]
            torch.default_generator.manual_seed(problem.seed)
            with observed_effects(problem.seed) as backward:
                problem.backward(chosen, leaves, cotangents)
            findings += _finding(subject, "backward", backward.texts)
            if backward.flooded:
                silence()
    except OpRaised as raised:
        if not findings:
            return Outcome("skipped", note=f"{raised.phase} raised")
    # From here on the state is put back after every call, not after every rule.
    problem.preserve_state = bool(findings)
    return Outcome("fail" if findings else "pass", findings)


def _finding(subject: Subject, phase: str, texts: list[str]) -> list[Finding]:
    if not texts:
        return []
    from gradlint.targets import source

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


RULE = Rule(
    code="GL008",
    name="process_state_changed",
    severity="warning",
    summary="forward or backward changes global state or leaves something running",
    module=__name__,
    probe=probe,
)
