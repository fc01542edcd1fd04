"""Nondeterministic.

What it finds
-------------
Identical calls (same values, same seeds) that give different outputs or gradients, beyond rounding.
The first call is compared with several later ones: an autotuner that runs a kernel which adds to
its result, or state that is set up lazily, shows only there. Differences in the last bits, caused
by sums in varying order, are a note. Where all later calls agree and only the first differs, or
where a second identical call raises, it is an error.

Cost: 2 forward and 2 backward calls in addition to those that other rules have made anyway.

Why it matters
--------------
If identical calls disagree, at least one result is wrong: a race, memory that was never written,
numbers drawn from a source that no seed controls.

Bad
---
```python
import itertools
import torch

CALLS = itertools.count()

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.cos() * (1 + next(CALLS) % 2)

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
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

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
mylib/ops.py:15:16  GL606 warning  the gradient for `x` changes between identical calls
  where      index [0]
  measured   3 of 3 elements differ
             index   returned   expected    error
             [0]    -2.696185  -1.348093  1.3e+00
  calls      2 of 4 identical calls differ
  help       look for state, races and unseeded random numbers
```

References
----------
- Reproducibility: https://docs.pytorch.org/docs/stable/notes/randomness.html
- Autotuning runs a mutating kernel: triton-lang/triton#4217, lucidrains/lion-pytorch#36
"""

from __future__ import annotations

from gradlint.experiments.baseline_comparison import Difference, make_baseline
from gradlint.experiments.gradient_place import gradient_place
from gradlint.experiments.outcomes import skipped
from gradlint.experiments.preconditions import why_not_repeatable
from gradlint.experiments.state.repeated_calls import (
    NONDETERMINISTIC_NOTE,
    Repeats,
    compare_repeats,
)
from gradlint.experiments.state.state_findings import raised_there_finding
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of
from gradlint.trace.op_io import OpRaised

RULE = rule_of(__name__)

_HELP = (
    "look for state kept between calls, races (atomics, missing synchronisation), uninitialised "
    "memory, and random numbers that no seed controls"
)


def probe(subject: Subject) -> Outcome:
    """Compare identical calls."""
    again = _raised_again(subject)
    if again is not None:
        return Outcome("fail", [again])
    reason = why_not_repeatable(subject)
    if reason and reason != NONDETERMINISTIC_NOTE:
        return skipped(reason)
    repeats = compare_repeats(subject)
    findings = [_finding(subject, repeats, item, True) for item in repeats.outputs]
    findings += [_finding(subject, repeats, item, False) for item in repeats.gradients]
    if not findings and repeats.bits:
        findings = [
            subject.finding(
                RULE,
                f"{repeats.bits} of {repeats.calls} identical calls differ in the last bits",
                severity="info",
                help="sums in varying order cause this; torch.use_deterministic_algorithms(True) "
                "avoids PyTorch's own",
            )
        ]
        return Outcome("pass", findings)
    return Outcome("fail" if findings else "pass", findings)


def _raised_again(subject: Subject) -> Finding | None:
    """A finding where an identical later call raises, and the first did not."""
    run = subject.run
    unseen = run.error is not None or run.gradients is None or subject.problem.has_sparse_inputs
    if unseen or subject.once(make_baseline) is not None:
        return None
    try:
        subject.problem.pull(run.cotangents)
    except OpRaised as raised:
        return raised_there_finding(subject, RULE, raised, "in an identical later call", help=_HELP)
    return None


def _finding(subject: Subject, repeats: Repeats, found: Difference, output: bool) -> Finding:
    item = None if output else subject.problem.inputs[found.position]
    what = f"`{found.name}`" if item is None else f"the gradient for `{item.name}`"
    when = "after the first call" if repeats.first_only else "between identical calls"
    evidence = found.evidence()
    evidence["calls"] = f"{repeats.differing} of {repeats.calls} identical calls differ"
    return subject.finding(
        RULE,
        f"{what} changes {when}",
        severity=None if repeats.first_only else "warning",
        input=None if item is None else item.name,
        output=found.name if output else None,
        index=found.index,
        cause="first-call" if repeats.first_only else None,
        cause_text="first-call: all later calls agree with each other; autotuning, or state that "
        "is set up by the first call"
        if repeats.first_only
        else "",
        place=None if item is None else gradient_place(subject, item),
        evidence=evidence,
        help=_HELP,
    )
