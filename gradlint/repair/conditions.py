"""Candidates for gradients that are wrong where a comparison changes: at zero, at a bound, where
elements are equal, or at large magnitudes (GL402)."""

from __future__ import annotations

from collections.abc import Iterator

import libcst

from gradlint.repair.candidate import Candidate, Edit, Fit
from gradlint.repair.expressions import is_product
from gradlint.repair.scene import Scene

_CODES = ("GL402", "GL401", "GL302")

_STRICT: dict[type[libcst.BaseCompOp], str] = {
    libcst.LessThan: "<=",
    libcst.LessThanEqual: "<",
    libcst.GreaterThan: ">=",
    libcst.GreaterThanEqual: ">",
}


def strictness(scene: Scene) -> Iterator[Candidate]:
    """``<`` and ``<=`` exchanged, of one comparison in backward."""
    tree, backward = scene.tree, scene.backward
    if scene.fault.code != "GL402" or backward is None or not scene.own(backward):
        return
    for node in tree.within(backward.node, libcst.Comparison):
        for part in node.comparisons:
            other = _STRICT.get(type(part.operator))
            if other is not None:
                start, end = tree.span(part.operator)
                text = tree.text[start:end].strip()
                first = tree.text.index(text, start)
                yield Candidate(
                    f"compare by {other} in place of {text} in {tree.code(node)}",
                    (Edit(first, first + len(text), other),),
                    Fit.LIKELY,
                )


def masks(scene: Scene) -> Iterator[Candidate]:
    """No factor that is a comparison, and no branch of ``torch.where``."""
    tree, backward = scene.tree, scene.backward
    if scene.fault.code not in _CODES[:1] or backward is None or not scene.own(backward):
        return
    for node in tree.within(backward.node, libcst.BinaryOperation):
        if not is_product(node):
            continue
        for side, other in ((node.right, node.left), (node.left, node.right)):
            if isinstance(side, libcst.Comparison):
                yield Candidate(
                    f"leave the mask {tree.code(side)} out",
                    (tree.replaced(node, tree.code(other)),),
                    Fit.LIKELY,
                )
    for call in tree.within(backward.node, libcst.Call):
        if tree.code(call.func) not in ("torch.where", "where") or len(call.args) != 3:
            continue
        for place in (2, 1):
            code = tree.code(call.args[place].value)
            loose = isinstance(call.args[place].value, (libcst.BinaryOperation, libcst.Comparison))
            inside = isinstance(tree.parent(call), (libcst.BinaryOperation, libcst.Attribute))
            yield Candidate(
                f"use {code} everywhere",
                (tree.replaced(call, f"({code})" if loose and inside else code),),
                Fit.LIKELY,
            )


def shared(scene: Scene) -> Iterator[Candidate]:
    """The gradient of a largest element shared among all that are equal to it."""
    fault, tree = scene.fault, scene.tree
    if fault.code != "GL402" or scene.forward is None:
        return
    forward = tree.code(scene.forward.node)
    axis = None
    for call in tree.within(scene.forward.node, libcst.Call):
        if isinstance(call.func, libcst.Attribute) and call.func.attr.value in (
            "amax",
            "amin",
            "max",
            "min",
        ):
            axis = ", ".join(tree.code(arg).rstrip(", ") for arg in call.args)
    if axis is None or "keepdim" not in forward:
        return
    for source in scene.sources(fault.input):
        for node in tree.within(source, libcst.Comparison):
            if isinstance(node.comparisons[0].operator, libcst.Equal):
                mask = tree.code(node)
                mask = mask if node.lpar else f"({mask})"
                yield Candidate(
                    "share the gradient among equal elements",
                    (tree.replaced(node, f"({mask} / {mask}.sum({axis}))"),),
                    Fit.LIKELY,
                )


FAMILY = (strictness, masks, shared)
