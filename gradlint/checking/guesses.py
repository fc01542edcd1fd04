"""Is the guess at fault? A gradient that is wrong at guessed inputs, and right at others.

Where inputs were inferred and a gradient is found wrong, or backward raises, the op may rely on
what its callers always pass. Inputs are guessed otherwise where a name or a sentence suggests it:
symmetric, triangular, rotations, rows that sum to one, zeros and ones. If backward is right there,
these become the sample, on which all rules run. Wrong at all of them, the fault is confirmed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch

from gradlint.experiments.call_budget import SINGLE_DIRECTION, decide_within
from gradlint.experiments.preconditions import why_not_measurable, why_not_run
from gradlint.experiments.subject import Subject
from gradlint.inputs.documentation import prose
from gradlint.model.report import Finding
from gradlint.model.sample import Sample
from gradlint.numerics.decide import decide
from gradlint.numerics.verdict import AGREES, ROUNDED
from gradlint.trace.comparisons import Comparisons
from gradlint.trace.op_io import OpRaised

#: Findings that put a guess in question: first derivatives at the sample itself.
QUESTIONED = ("GL004", "GL102", "GL201", "GL401")

#: What documentation says of a matrix of which one triangle is read: "only the lower triangle of
#: ``L`` is used".
_READ = (
    r"(?i)\bonly (?:the |its )?(?:lower|upper)[- ]triang\w+(?: part| half)?(?: of)? (?:the )?"
    r"`*{name}`* (?:is|are) (?:ever )?(?:read|used|accessed|referenced)\b"
)

#: Other guesses that are judged at most.
MOST = 8


@dataclass
class Questioned:
    """What came of guessing otherwise.

    Args:
        subject: the op at the sample that takes the place of the first; None where the gradient is
            right at none.
        judged: number of other guesses that were judged.
        forward_calls, backward_calls: what that took.
    """

    subject: Subject | None = None
    judged: int = 0
    forward_calls: int = 0
    backward_calls: int = 0

    @property
    def verdict(self) -> str:
        """In the words of :class:`gradlint.model.report.Tried`."""
        return "right" if self.subject is not None else "wrong" if self.judged else "refused"


def is_questioned(sample: Sample, findings: Iterable[Finding]) -> bool:
    """Whether ``findings`` at ``sample`` put the guess in question."""
    return sample.otherwise is not None and any(
        item.sample == sample.label and item.severity != "info" and item.code in QUESTIONED
        for item in findings
    )


def first_words(findings: Iterable[Finding], label: str) -> str:
    """What was found first at the sample of this label."""
    return next(
        item.message
        for item in findings
        if item.sample == label and item.code in QUESTIONED and item.severity != "info"
    )


def guess_otherwise(subject: Subject) -> Questioned:
    """The first of the other guesses at which backward is right."""
    found = Questioned()
    make = subject.sample.otherwise
    if make is None or subject.settings.max_calls is not None or not _is_wrong(subject):
        return found
    for sample in itertools.islice(make(), MOST):
        if any("triangular" in sample.domains.get(name, "") for name in _made_triangular(subject)):
            continue
        there = Subject(subject.op, replace(sample, label=subject.sample.label), subject.settings)
        there.coverage = subject.coverage
        found.judged += 1
        right = _is_right(there)
        found.forward_calls += there.problem.forward_calls
        found.backward_calls += there.problem.backward_calls
        if right:
            found.subject = there
            break
    return found


def _made_triangular(subject: Subject) -> frozenset[str]:
    """The inputs of which forward takes a triangle itself, or of which the documentation says that
    it reads one alone: it is meant for whole matrices, and the gradient of what it leaves out is
    zero."""
    return subject.once(_find_made_triangular)


def _said_to_be_read(subject: Subject, name: str) -> bool:
    """Whether documentation says that only a triangle of an input is read."""
    text = prose(subject.op.defining) if subject.op.defining is not None else ""
    return re.search(_READ.format(name=re.escape(name)), " ".join(text.split())) is not None


def _find_made_triangular(subject: Subject) -> frozenset[str]:
    watched = Comparisons()
    try:
        with watched:
            subject.problem.forward()
    except (OpRaised, RuntimeError):
        return frozenset()
    named = subject.sample.named_tensors(subject.op.signature)
    taken = {
        name
        for name, tensor in named
        for other in watched.triangles
        if tensor.shape == other.shape and torch.equal(tensor.detach(), other)
    }
    return frozenset(taken | {name for name, _ in named if _said_to_be_read(subject, name)})


def _is_wrong(subject: Subject) -> bool:
    """Whether backward raises at the sample, or a gradient is wrong there, and not only with other
    numbers or at special points."""
    try:
        return subject.run.error is not None or bool(subject.wrong_inputs)
    except OpRaised:
        return False


def _is_right(there: Subject) -> bool:
    """Whether the gradients of all inputs are right, first along one direction."""
    try:
        if why_not_run(there) or why_not_measurable(there) or not there.judged:
            return False
        if any(g is None for k, g in enumerate(there.run.gradients or ()) if k in there.judged):
            return False
        first = decide_within(
            there.plan,
            there.problem,
            there.first_order_map,
            0,
            lambda map: decide(map, seed=there.seed, kinds=SINGLE_DIRECTION, inputs=there.judged),
        )
        return _agree(first.verdicts) and _agree(there.first_order.verdicts)
    except OpRaised:
        return False


def _agree(verdicts: Iterable[str]) -> bool:
    return all(verdict in (AGREES, ROUNDED) for verdict in verdicts)
