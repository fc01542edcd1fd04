"""Wrong at odd sizes.

What it finds
-------------
A gradient that is right at the sample, but wrong, not finite or refused by an exception in backward
at other sizes. The sample is resized: all dimensions at once to odd sizes (a little beyond a power
of two along the last axis, primes elsewhere), each dimension alone to 1, with one leading axis
added or removed, and, where code or documentation is written for any number of axes behind the
first ones (`x.dim() - 2`, `(N, C, *)`), with one axis behind the others added or removed; and with
an axis more where inputs were inferred with one less than documentation gives. Axes of equal size
change together. Where forward refuses an odd size, an even one is tried, and then the next ones
after the sample's: a parameter may have half the size of an axis, rounded down. Other sizes that
forward refuses are left out, and so are other numbers of axes at which backward raises, because
forward accepted them by accident. Where forward computes something else with another axis than with
a batch, this is information; so it is where inputs of size 1 broadcast against a parameter or
buffer, unless the documentation speaks of broadcasting or the code sums to shapes; and so it is at
odd sizes where even ones are right, unless the documentation allows any size or the code tells odd
and even ones apart; and so it is at sizes that forward runs out of, where it clamps to an empty
range (`index.clamp(0, n - 2)` at n = 1), solves with a singular matrix (more equations than
unknowns), an index falls below zero as it does not at the sample, or `k` elements are selected of
fewer; and where what differs is what rounding leaves of terms that cancel at that size, as the
distance of a point from the only line there is; and where a gradient is not finite at a size at
which forward's own operations have no finite derivative, though they have one at the sample: the
angle of a single band is acos(±1); and at other sizes of an axis of 3 or 4 of which the code takes
each member, as `s[:, 0] * s[:, 1] * s[:, 2]` does of the edges of triangles.

Cost: 3 forward calls and 1 backward call for each of up to 8 shapes that forward accepts (odd sizes
and the leading axis are tried together where all is well), 1 forward call for others, of which
there are up to 3 more for each of 3 sizes where odd ones are refused; up to 2 more
forward calls for each shape at which the op fails, and 4 more with 2 backward calls where a
gradient is not finite there; 4 backward calls for each direction along which one is wrong.

Why it matters
--------------
Kernels work in blocks, and the last, incomplete block needs a mask; a bare `squeeze()` drops the
axis of a batch of one. Tests use round sizes, and the last batch of an epoch is the first to
differ.

Bad
---
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return (x * weight).sum(1)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_weight = torch.zeros_like(weight)
        for start in range(0, x.shape[0] - 1, 2):
            block = slice(start, start + 2)
            grad_weight += (grad_output[block, None] * x[block]).sum(0)
        return grad_output[:, None] * weight, grad_weight

    @staticmethod
    def sample_inputs():
        generator = torch.Generator().manual_seed(0)
        return torch.randn(4, 3, generator=generator), torch.randn(3, generator=generator)
```

Good
----
```python
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return (x * weight).sum(1)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_weight = torch.zeros_like(weight)
        for start in range(0, x.shape[0], 2):
            block = slice(start, start + 2)
            grad_weight = grad_weight + (grad_output[block, None] * x[block]).sum(0)
        return grad_output[:, None] * weight, grad_weight

    @staticmethod
    def sample_inputs():
        generator = torch.Generator().manual_seed(0)
        return torch.randn(4, 3, generator=generator), torch.randn(3, generator=generator)
```

How it looks
------------
```text
mylib/ops.py:16:47  GL706  wrong gradient for `weight` where `x` has shape [13, 3]
  16 |         return grad_output[:, None] * weight, grad_weight
     |                                               ^^^^^^^^^^^ returned for `weight`
  where      index [2]
  measured   3 of 3 elements differ; the gradient is off by 48 %
             sure: errors from 3e-9 on would have been seen, this one is over a million times larger
             index   returned   measured    error
             [2]    +5.354005  +3.548382  1.8e+00
             [1]    +3.478940  +2.045586  1.4e+00
  help       look in backward for incomplete blocks without a mask, sizes rounded down, …
```

References
----------
- Incomplete blocks: state-spaces/mamba#368, open-mmlab/mmcv#1212
- Axes of size one: deep-spin/entmax#18, nerfstudio-project/gsplat#136
"""

from __future__ import annotations

from collections.abc import Collection

from gradlint.experiments.judge_at_other_inputs import RAISED, RIGHT
from gradlint.experiments.layout.meant_broadcasting import parts_of, text_of
from gradlint.experiments.layout.meant_odd_sizes import odd_sizes_are_meant
from gradlint.experiments.layout.other_sizes import SizeTrial, SizeTrials
from gradlint.experiments.outcomes import any_defect, skipped
from gradlint.experiments.preconditions import why_not_resizable
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.findings_elsewhere import findings_elsewhere
from gradlint.inputs.members_apart import sizes_taken_apart
from gradlint.inputs.resized import tensors_of, tied_axes
from gradlint.model.report import Finding, Severity
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import rule_of

RULE = rule_of(__name__)

HELP = (
    "look in backward for incomplete blocks without a mask, sizes that are rounded down or"
    " hard-coded, and squeeze() without an axis"
)

HELP_EVEN = "refuse odd sizes in forward, or treat the middle element in backward as forward does"

HELP_RANK = (
    "look in backward for axes counted from the front where forward counts from the back; or refuse"
    " other numbers of axes in forward"
)

HELP_TRAILING = (
    "look in backward for a fixed number of axes where forward takes any number of them; or refuse"
    " other numbers of axes in forward"
)

HELP_LENGTH = "refuse other lengths in forward: it does not read what is beyond"

HELP_OTHER_FUNCTION = (
    "forward does not take the additional axis for a batch: if it is not meant to, refuse other"
    " numbers of axes in it"
)


def probe(subject: Subject) -> Outcome:
    """Judge the op at odd sizes, at size 1, and with one axis added or removed."""
    reason = why_not_resizable(subject)
    if reason:
        return skipped(reason)
    sizes = SizeTrials(subject)
    odd = sizes.odd()
    halved = odd.sizes if odd is not None and odd.hint else {}  # size 1 is odd too
    ones = [
        item for item in sizes.alone(1) if item.faulty and not item.sizes.keys() & halved.keys()
    ]
    apart = _sizes_taken_apart(subject)
    findings: list[Finding] = []
    if odd is not None and odd.faulty:
        findings += _odd_findings(subject, odd, apart)
    for item in [] if any_defect(findings) else ones:
        if item.judgement.verdict == RAISED and sizes.broadcast(item):
            continue
        # Where outputs do not have the axis, forward may rely on the sample's size without a check.
        raised = item.judgement.verdict == RAISED
        unstated_demand = raised and not sizes.raises_where_carried(item)
        unstated_demand |= _is_apart(item, apart)
        findings += findings_elsewhere(
            subject,
            RULE,
            item.judgement,
            item.words,
            cause="size-one",
            help=HELP,
            kind="other-size",
            severity="info" if unstated_demand else None,
            explained=item.explained,
        )
    findings += [] if any_defect(findings) else _findings_of_ranks(subject, sizes)
    for item in sizes.unread:
        findings += findings_elsewhere(
            subject,
            RULE,
            item.judgement,
            item.words,
            cause="length-unchecked",
            help=HELP_LENGTH,
            kind="other-size",
            severity="info",
            explained="unread",
        )
    if any_defect(findings):
        return Outcome("fail", findings)
    less = "; ".join(filter(None, (sizes.small, sizes.left_out)))
    if any(item.judgement.verdict == RIGHT for item in sizes.tried):
        return Outcome("pass", findings, note=less)
    if not sizes.tried:
        note = "forward accepts no other sizes" if sizes.refused else less or "nothing to resize"
        return Outcome("skipped", findings, note=note)
    note = "; ".join(filter(None, ("inconclusive at every other size", less)))
    return Outcome("inconclusive", findings, note=note)


def _odd_findings(subject: Subject, odd: SizeTrial, apart: frozenset[int]) -> list[Finding]:
    """What is wrong at odd sizes; ``apart`` are the sizes of which code takes each member."""
    meant = bool(odd.hint) and odd_sizes_are_meant(subject)
    hint = odd.hint.partition(":")[0] if meant else odd.hint
    findings = findings_elsewhere(
        subject,
        RULE,
        odd.judgement,
        odd.words,
        cause="odd-size" if all(size % 2 for size in odd.sizes.values()) else "other-size",
        help=HELP_EVEN if hint and not meant else HELP,
        kind="other-size",
        severity=_severity_of(odd, apart, meant=meant),
        explained=odd.explained,
    )
    for finding in findings:
        finding.cause_text = "; ".join(filter(None, (hint, finding.cause_text)))
    return findings


def _findings_of_ranks(subject: Subject, sizes: SizeTrials) -> list[Finding]:
    """What is wrong with an axis more or fewer in front; and if nothing is, with the number of axes
    that documentation gives, and with another number of them behind the first ones."""
    by_accident = (item for item in sizes.ranks() if item.judgement.verdict != RAISED)
    meant = (item for more in (sizes.as_documented, sizes.trailing) for item in more())
    findings: list[Finding] = []
    for items, help_text in ((by_accident, HELP_RANK), (meant, HELP_TRAILING)):
        for item in [] if any_defect(findings) else items:
            if item.faulty:
                findings += findings_elsewhere(
                    subject,
                    RULE,
                    item.judgement,
                    item.words,
                    cause="rank",
                    help=HELP_OTHER_FUNCTION if item.other_function else help_text,
                    kind="other-size" if item.documented else "other-rank",
                    explained="other-function" if item.other_function else None,
                )
    return findings


def _severity_of(odd: SizeTrial, apart: Collection[int], *, meant: bool) -> Severity | None:
    """The severity of a fault at odd sizes, where that is not for the evidence to decide.

    Args:
        apart: sizes of which code takes each member: no others are meant.
        meant: whether the op is meant for odd sizes where even ones are right.
    """
    if _is_apart(odd, apart):
        return "info"
    if meant and odd.judgement.verdict != RAISED:
        return None
    if odd.hint or (odd.size_is_kept and not odd.seen_in_outputs):
        return "info"
    return "warning" if odd.length_guessed else None


def _sizes_taken_apart(subject: Subject) -> frozenset[int]:
    """The sizes of which code takes each member of an axis. What it takes of a last axis, as the
    coordinates of points, says nothing of how many points there are."""
    tensors, axes = tensors_of(subject.sample), tied_axes(subject.sample)
    known = sizes_taken_apart(text_of(part) for part in parts_of(subject))
    return frozenset(
        size
        for size, places in known.items()
        for number, axis in axes.get(size, ())
        if any(p is None or p >= 0 or p == axis - tensors[number].dim() for p in places)
    )


def _is_apart(trial: SizeTrial, apart: Collection[int]) -> bool:
    """Whether nothing was changed but axes of which code takes each member."""
    return bool(trial.sizes) and set(trial.sizes) <= set(apart)
