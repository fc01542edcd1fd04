"""Identities that are there for their gradient: reversed, clipped or scaled on purpose.

Forward returns what it is given, so that the derivative is one. Which gradient is meant is known
where the name or the documentation says it and numbers that the op holds are its measure:

    reversed    g = -c·v           (Ganin & Lempitsky 2015)
    scaled      g = c·v or v / c
    clipped     g = min(max(v, -c), c), or c·v / ‖v‖ where ‖v‖ exceeds c

with grad_output v and a number c among the arguments, the attributes of a module, and the constants
of the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import torch

from gradlint.experiments.subject import Subject
from gradlint.experiments.value.said_of_gradients import functions_called
from gradlint.inputs.documentation import prose
from gradlint.targets.nodes import code_of
from gradlint.trace.op_io import OpRaised

#: Kind of gradient → how names and documentation speak of it. What is reversed may be scaled
#: besides, and a text that speaks of clipping by a factor means clipping: the first that is found.
_SAID = (
    ("reversed", re.compile(r"(?i)revers|\brev\b|negat|flip|adversar")),
    ("clipped", re.compile(r"(?i)clip|clamp|bound|limit|truncat")),
    ("scaled", re.compile(r"(?i)scal|multipl|\bmul\b|attenuat|amplif|damp|weight|factor")),
)
_OF_GRADIENTS = re.compile(r"(?i)\bgrad|backward|deriv|back-?prop")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n\s*\n")
#: How a sentence says that gradients are scaled; that backward has a weight does not say it.
_SCALES = re.compile(
    r"(?i)\b(?:grad|deriv)\w*\b.{0,40}?\b(?:scal|multipl|attenuat|amplif|damp|shr[iu]nk)\w*"
    r"|\b(?:scal|multipl|attenuat|amplif|damp|shr[iu]nk)\w*\b.{0,40}?\b(?:grad|deriv)"
)
_NOT = re.compile(r"(?i)\b(?:not|no|never|without|unlike)\b")

#: Magnitudes of the cotangents that are tried: below any bound, and beyond it (heuristic).
_SMALL, _LARGE = 1e-4, 1e4

#: Relative disagreement with a number that the op holds: rounding, and an epsilon that is added to
#: a norm.
_SAME = 1e-5


def is_as_said(subject: Subject, position: int) -> bool:
    """Whether the gradient of input ``position``, which forward returns as it is, is altered as the
    name or the documentation says; where there is a mask among the arguments, some of it may be
    stopped besides. Two backward calls."""
    kind = _kind(subject)
    names = [item.name for item in subject.run.outputs if item.differentiable]
    if not kind or len(names) != 1:
        return False
    value = subject.problem.inputs[position].value
    if value.is_complex() or not value.numel():
        return False
    unit = torch.linspace(-1.0, 1.1, 2 * value.numel())[::2].reshape(value.shape).to(value)
    pairs = []
    try:
        for size in (_SMALL, _LARGE):
            found = subject.problem.pull({names[0]: size * unit})[position]
            if found is None or found.shape != value.shape:
                return False
            pairs.append((size * unit, found.clone()))
    except OpRaised:
        return False
    held = sorted({abs(number) for number in _numbers(subject)} | {1.0})
    if kind == "clipped":
        return _is_clipped(pairs, held)
    sign = -1.0 if kind == "reversed" else 1.0
    factors = [c for number in held if number for c in (number, 1.0 / number)]
    given = subject.other_arguments().values()
    masked = any(isinstance(item, torch.Tensor) and item.dtype == torch.bool for item in given)
    passed = [
        (v, g, (g != 0) if masked else torch.ones_like(g, dtype=torch.bool)) for v, g in pairs
    ]
    return any(
        all(bool(on.any()) and _same(g[on], sign * c * v[on]) for v, g, on in passed)
        for c in factors
    )


def says_scaled_by(subject: Subject, name: str) -> bool:
    """Whether the documentation says of gradients that they are scaled by the argument ``name``."""
    named = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    return any(_SCALES.search(text) and named.search(text) for text in _about_gradients(subject))


def _is_clipped(pairs: list[tuple[torch.Tensor, torch.Tensor]], held: list[float]) -> bool:
    (small, passed), (large, clipped) = pairs
    if not _same(passed, small):
        return False
    return any(
        _same(clipped, large.clamp(-c, c)) or _same(clipped, large * (c / large.norm()))
        for c in held
    )


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool(((one - other).abs() <= _SAME * other.abs().max()).all())


def _kind(subject: Subject) -> str:
    about = _about_gradients(subject)
    return next((kind for kind, words in _SAID if any(map(words.search, about))), "")


def _about_gradients(subject: Subject) -> list[str]:
    """The names and the sentences of the documentation that speak of gradients."""
    owner = subject.op.function or subject.op.defining
    things = [owner, *functions_called(owner)]
    texts = [_words(getattr(thing, "__name__", "")) for thing in things]
    texts += [sentence for thing in things for sentence in _SENTENCE.split(prose(thing))]
    return [text for text in texts if _OF_GRADIENTS.search(text) and not _NOT.search(text)]


def _words(name: str) -> str:
    """``GradClamp`` or ``grad_clamp`` as words."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", name)


def _numbers(subject: Subject) -> Iterator[float]:
    """Numbers that the op holds."""
    owner = subject.op.function or subject.op.defining
    values: list[Any] = list(subject.other_arguments().values())
    values += [item.value for item in subject.problem.inputs if not item.value.dim()]
    for thing in (owner, *functions_called(owner)):
        for part in (thing, getattr(thing, "forward", None), getattr(thing, "backward", None)):
            code = code_of(part)
            values += code.co_consts if code is not None else []
    for value in values:
        if isinstance(value, torch.Tensor) and value.numel() == 1 and not value.is_complex():
            yield float(value.detach())
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield float(value)
