"""Candidates for formulas that give NaN or Inf where the function has a finite derivative: the
functions of PyTorch that are written for it (GL301, GL302, GL303)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst

from gradlint.repair.candidate import Candidate, Edit, Fit
from gradlint.repair.scene import Scene

_CODES = ("GL301", "GL302", "GL303", "GL402", "GL401")

_X = r"(?P<x>[A-Za-z_][\w.]*)"

#: A formula as people write it → the one that stays finite. ``x`` is one name throughout.
_FORMS: tuple[tuple[str, str], ...] = (
    (rf"1(?:\.0)? / \(1(?:\.0)? \+ torch\.exp\(-{_X}\)\)", "torch.sigmoid({x})"),
    (rf"1(?:\.0)? / \(1(?:\.0)? \+ \(-{_X}\)\.exp\(\)\)", "torch.sigmoid({x})"),
    (rf"torch\.exp\({_X}\) / \(1(?:\.0)? \+ torch\.exp\((?P=x)\)\)", "torch.sigmoid({x})"),
    (rf"{_X}\.exp\(\) / \(1(?:\.0)? \+ (?P=x)\.exp\(\)\)", "{x}.sigmoid()"),
    (rf"torch\.log\(1(?:\.0)? \+ torch\.exp\({_X}\)\)", "torch.nn.functional.softplus({x})"),
    (rf"\(1(?:\.0)? \+ {_X}\.exp\(\)\)\.log\(\)", "torch.nn.functional.softplus({x})"),
    (rf"torch\.log\({_X}\.softmax\((?P<d>-?\w+)\)\)", "{x}.log_softmax({d})"),
    (rf"{_X}\.softmax\((?P<d>-?\w+)\)\.log\(\)", "{x}.log_softmax({d})"),
    (rf"torch\.log\(1(?:\.0)? \+ {_X}\)", "torch.log1p({x})"),
    (rf"torch\.exp\({_X}\) - 1(?:\.0)?", "torch.expm1({x})"),
    (rf"{_X}\.exp\(\)\.sum\((?P<d>-?\w+(?:, keepdim=True)?)\)\.log\(\)", "{x}.logsumexp({d})"),
    (
        rf"\(?{_X} / (?P=x)\.abs\(\)\)?",
        "{x}.sign()",
    ),
    (rf"\(?{_X} / torch\.abs\((?P=x)\)\)?", "torch.sign({x})"),
)

_NUMBERS = (libcst.Integer, libcst.Float)


def functions(scene: Scene) -> Iterator[Candidate]:
    """One formula, or all of the class, by the function that is written for it."""
    if scene.fault.code not in _CODES[:4]:
        return
    start, end = scene.tree.span(scene.owner)
    edits: list[Edit] = []
    for pattern, form in _FORMS:
        for found in re.finditer(pattern, scene.tree.text[start:end]):
            new = form.format(**found.groupdict())
            edit = Edit(start + found.start(), start + found.end(), new)
            yield Candidate(f"write {new}, which stays finite", (edit,), Fit.LIKELY)
            if all(edit.start >= one.end or edit.end <= one.start for one in edits):
                edits.append(edit)
    if len(edits) > 1:
        yield Candidate("write formulas that stay finite", tuple(edits), Fit.LIKELY)


def denominators(scene: Scene) -> Iterator[Candidate]:
    """A quotient whose denominator is never zero: where it would be, the numerator is what is
    left, which is right wherever that vanishes with it."""
    fault, tree, backward = scene.fault, scene.tree, scene.backward
    if fault.code != "GL302" or backward is None or not scene.own(backward):
        return
    for node in tree.within(backward.node, libcst.BinaryOperation):
        below = node.right
        if not isinstance(node.operator, libcst.Divide) or isinstance(below, _NUMBERS):
            continue
        code = tree.code(below)
        inner = tree.inner(below)
        text = f"torch.where({inner} == 0, 1, {inner})"
        yield Candidate(
            f"do not divide by {code} where it is zero",
            (tree.replaced(below, text),),
            Fit.GUESS,
            note="where the denominator is zero, the numerator takes the place of the quotient: "
            "make sure that this is its limit; second derivatives at that point are then those of "
            "the numerator, which may be wrong: no rule measures them there",
        )


FAMILY = (functions, denominators)
