"""Candidates that declare what an operator is meant to do: outputs without a gradient, one
derivative only, a surrogate."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst

from gradlint.repair.candidate import Candidate, Edit, Fit
from gradlint.repair.scene import Scene

#: Words by which people say that a gradient is a surrogate.
_MEANT = re.compile(r"straight[- _]?through|\bste\b|surrogate", re.IGNORECASE)
_ONCE = "once_differentiable"


def surrogate(scene: Scene) -> Iterator[Candidate]:
    """A surrogate declared, where the class says that one is meant."""
    fault, tree = scene.fault, scene.tree
    if fault.cause != "straight-through" or not fault.input:
        return
    if not _MEANT.search(scene.owner.name.value + (_docstring(scene) or "")):
        return
    incoming = scene.incoming[:1]
    for node in scene.returned_for(fault.input):
        text = tree.code(node)
        for name in incoming:
            text = re.sub(rf"\b{name}\b", "grad_output", text)
        text = re.sub(r"\.clone\(\)$", "", text)
        line = f'surrogate = {{"{fault.input}": "{text}"}}'
        for place in scene.owner.body.body:
            if isinstance(place, (libcst.FunctionDef, libcst.Assign)):
                first = (
                    place.decorators[0]
                    if isinstance(place, libcst.FunctionDef) and place.decorators
                    else place
                )
                start, indent = tree.line_of(first)
                edit = Edit(start, start, f"{indent}{line}{tree.newline}{tree.newline}")
                yield Candidate(
                    f"declare the surrogate gradient of `{fault.input}`", (edit,), Fit.NAMED
                )
                break


def _docstring(scene: Scene) -> str | None:
    return scene.owner.get_docstring(clean=False)


def once(scene: Scene) -> Iterator[Candidate]:
    """``@once_differentiable``, where second derivatives are lost or wrong."""
    backward, tree = scene.backward, scene.tree
    if scene.fault.code not in ("GL501", "GL502") or backward is None or not scene.own(backward):
        return
    if any(_ONCE in tree.code(one.decorator) for one in backward.node.decorators):
        return
    _, indent = tree.line_of(backward.node)
    start = tree.offset(tree.positions[backward.node].start.line, 0)
    edits = [Edit(start, start, f"{indent}@{_ONCE}{tree.newline}")]
    edits += _import(scene)
    if len(edits) == 2 or f"import {_ONCE}" in tree.text:
        yield Candidate(
            "say that backward can be differentiated once only",
            tuple(edits),
            Fit.GUESS,
            note="second derivatives raise then, instead of being wrong",
        )


def _import(scene: Scene) -> list[Edit]:
    tree = scene.tree
    if f"import {_ONCE}" in tree.text:
        return []
    last = None
    for node in tree.module.body:
        if isinstance(node, libcst.SimpleStatementLine) and isinstance(
            node.body[0], (libcst.Import, libcst.ImportFrom)
        ):
            last = node
    if last is None:
        return []
    end = tree.offset(tree.positions[last].end.line + 1, 0)
    return [Edit(end, end, f"from torch.autograd.function import {_ONCE}{tree.newline}")]


def not_differentiable(scene: Scene) -> Iterator[Candidate]:
    """``mark_non_differentiable`` for an output of whole numbers, or one that has no gradient."""
    forward, tree = scene.saving, scene.tree
    if (
        scene.fault.code not in ("GL111", "GL112", "GL113", "GL114", "GL605", "GL103")
        or not forward
    ):
        return
    if "mark_non_differentiable" not in scene.fault.help or not forward.ctx:
        return
    for statement in scene.returns_of(scene.forward):
        line = tree.nearest(statement, libcst.SimpleStatementLine)
        for node in scene.elements(statement):
            if isinstance(node, libcst.Name) and line is not None:
                text = f"{forward.ctx}.mark_non_differentiable({node.value})"
                yield Candidate(
                    f"declare that `{node.value}` has no gradient",
                    (tree.line_before(line, text),),
                    Fit.NAMED,
                )


FAMILY = (surrogate, once, not_differentiable)
