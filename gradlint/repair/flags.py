"""Candidates for gradients that depend on which inputs require grad (GL110)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst

from gradlint.repair.candidate import Candidate, Edit, Fit
from gradlint.repair.scene import Scene

_FLAGS = "needs_input_grad"


def positions(scene: Scene) -> Iterator[Candidate]:
    """The flag of each gradient's own position."""
    tree = scene.tree
    if scene.fault.code != "GL110" or scene.forward is None:
        return
    names = scene.forward.parameters
    edits: list[Edit] = []
    for place, name in enumerate(names):
        for node in scene.returned_for(name):
            made = scene.definition(node) or node
            if not isinstance(made, libcst.IfExp):
                continue
            for found in tree.within(made.test, libcst.Subscript):
                index = ", ".join(tree.code(one) for one in found.slice)
                if tree.code(found.value).endswith(_FLAGS) and index != str(place):
                    edits.append(tree.replaced(found.slice[0], str(place)))
    if edits:
        yield Candidate(
            f"test {_FLAGS} at the position of each gradient's own input", tuple(edits), Fit.NAMED
        )


def unconditional(scene: Scene) -> Iterator[Candidate]:
    """No condition on the flags, or on the identity of arguments."""
    tree = scene.tree
    if scene.fault.code != "GL110":
        return
    for method in (scene.backward, scene.saving):
        if method is None or not scene.own(method):
            continue
        for branch in tree.within(method.node, libcst.If):
            if _FLAGS in tree.code(branch.test) and branch.orelse is None:
                yield Candidate(
                    f"compute all gradients, whatever {tree.code(branch.test)} says",
                    (tree.without(branch),),
                    Fit.LIKELY,
                )
        for choice in tree.within(method.node, libcst.IfExp):
            flags = _FLAGS in tree.code(choice.test)
            kept = [choice.body, choice.orelse]
            if not flags:
                kept = [one for one in kept if tree.code(one) != "None"]
            for rank, one in enumerate(kept):
                if tree.code(one) == "None":
                    continue
                yield Candidate(
                    f"use {tree.code(one)}, whatever {tree.code(choice.test)} says",
                    (_in_its_place(scene, choice, one),),
                    Fit.LIKELY if rank == 0 else Fit.GUESS,
                )


def _in_its_place(scene: Scene, choice: libcst.IfExp, kept: libcst.BaseExpression) -> Edit:
    """``kept`` in place of ``choice``; ``f(*[a, b])`` becomes ``f(a, b)``."""
    tree = scene.tree
    arg = tree.parent(choice)
    if (
        isinstance(arg, libcst.Arg)
        and arg.star == "*"
        and isinstance(kept, (libcst.List, libcst.Tuple))
    ):
        start = tree.span(arg)[0]
        inside = ", ".join(tree.code(one.value) for one in kept.elements)
        return Edit(start, tree.outer(choice)[1], inside)
    return tree.replaced(choice, tree.code(kept))


def not_without_graph(scene: Scene) -> Iterator[Candidate]:
    """The same flag on forward's side: what is saved does not depend on it."""
    tree = scene.tree
    if scene.fault.code != "GL110" or scene.saving is None or not scene.own(scene.saving):
        return
    for node in tree.within(scene.saving.node, libcst.Assign):
        if re.search(r"\bis\b", tree.code(node.value)):
            for target in node.targets:
                name = tree.code(target.target)
                yield from _never(scene, name)


def _never(scene: Scene, name: str) -> Iterator[Candidate]:
    tree = scene.tree
    for choice in tree.within(scene.backward.node if scene.backward else None, libcst.IfExp):
        if tree.code(choice.test) == name and tree.code(choice.body) == "None":
            yield Candidate(
                "do not tell arguments apart by their identity",
                (tree.replaced(choice, tree.code(choice.orelse)),),
                Fit.NAMED,
            )


FAMILY = (positions, unconditional, not_without_graph)
