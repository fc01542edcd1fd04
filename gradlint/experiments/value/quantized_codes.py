"""Vectors that are replaced by the nearest code: the gradient passes straight through, and a loss
is split by stops of gradients.

Of z and its nearest code e, a quantizer returns e, whose gradient is handed to z as it is and kept
from the codebook, and |sg(z) − e|² + β |z − sg(e)|², where sg stops gradients (van den Oord et al.,
Neural discrete representation learning, 2017). Forward computes (1 + β) |z − e|²; z gets
β / (1 + β) of its derivative, and the codebook 1 / (1 + β): shares that add up to one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from gradlint.experiments.forward_under_autograd import through_autograd
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.said_of_gradients import says_surrogate
from gradlint.experiments.value.usual_surrogates import same
from gradlint.model.report import Finding
from gradlint.numerics.directions import cotangent
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem

#: By how much the shares of a loss may miss that they add up to one (heuristic: roundings of the
#: dtype of a share that is the quotient of two sums).
OFF_ONE = 1e-6

#: Share of the vectors that is left where all are brought near the first one (heuristic: codes lie
#: farther apart, and no two vectors become equal).
NEARBY = 1e-3


def soften_codes(subject: Subject, findings: Sequence[Finding]) -> None:
    """Let a quantizer's gradients explain what is wrong, where its name or its documentation tells
    of a surrogate; all that is wrong, or nothing.

    Args:
        subject: the op, with two outputs or more.
        findings: wrong gradients; they are changed.
    """
    wrong = [item for item in findings if item.severity == "error" and not item.grounds.explained]
    outputs = [item for item in subject.run.outputs if item.differentiable]
    if not wrong or len(outputs) < 2:
        return
    if not says_surrogate(subject.op.function or subject.op.defining):
        return
    try:
        explained = _passes_codes(subject, {item.input or "" for item in wrong})
    except (OpRaised, RuntimeError, ValueError):
        return
    for item in wrong if explained else ():
        item.grounds = replace(item.grounds, explained="surrogate")


def _passes_codes(subject: Subject, wrong: set[str]) -> bool:
    """Whether the gradients of the inputs ``wrong`` are those of such a quantizer: at the sample,
    and where all vectors are near the first one, so that one code stands for several."""
    plain = through_autograd(subject)
    if plain is None:
        return False
    places = [k for k, item in enumerate(subject.problem.inputs) if item.name in wrong]
    values = [value.detach() for value in subject.problem.values()]
    straight = _passed_through(subject, plain, places, values)
    if straight is None:
        return False
    z = values[straight]
    rows = z.reshape(-1, z.shape[-1])
    values[straight] = (rows[:1] + NEARBY * rows).reshape(z.shape)
    return _passed_through(subject, plain, places, values) == straight


def _passed_through(
    subject: Subject, plain: Problem, places: Sequence[int], values: list[torch.Tensor]
) -> int | None:
    """The input to which an output hands its gradient on, where all other outputs split theirs
    between the inputs ``places``; None where they do not."""
    names = [item.name for item in subject.run.outputs if item.differentiable]
    generator = torch.Generator().manual_seed(subject.seed)
    straight = None
    for name, output in zip(names, subject.first_order_map.outputs, strict=True):
        v = cotangent(output, generator)
        own, derivatives = subject.problem.pull({name: v}, values), plain.pull({name: v}, values)
        pairs = [(own[k], derivatives[k]) for k in places]
        passed = _handed_on(pairs, v)
        if passed is not None:
            straight = places[passed]
        elif not _is_split(pairs):
            return None
    return straight


_Pair = tuple[torch.Tensor | None, torch.Tensor | None]


def _is_zero(value: torch.Tensor | None) -> bool:
    return value is None or not bool(value.any())


def _handed_on(pairs: Sequence[_Pair], v: torch.Tensor) -> int | None:
    """The one input that gets its gradient as it is, in which the output is constant, and beside
    which no other gets any; None where there is none."""
    passed = [
        k
        for k, (own, derivative) in enumerate(pairs)
        if own is not None and _is_zero(derivative) and same(own, v)
    ]
    others = [own for k, (own, _) in enumerate(pairs) if k not in passed]
    return passed[0] if len(passed) == 1 and all(map(_is_zero, others)) else None


def _is_split(pairs: Sequence[_Pair]) -> bool:
    """Whether each input gets a share of its derivative, and the shares add up to one."""
    shares = []
    for own, derivative in pairs:
        if own is None or derivative is None or _is_zero(derivative):
            return False
        share = float((own * derivative).sum() / derivative.square().sum())
        if not same(own, share * derivative) or share < 0.0:
            return False
        shares.append(share)
    return abs(sum(shares) - 1.0) <= OFF_ONE
