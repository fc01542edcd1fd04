"""Candidates for a gradient whose axes are exchanged."""

from __future__ import annotations

from collections.abc import Iterator

import libcst

from gradlint.repair.candidate import Candidate, Edit, Fit
from gradlint.repair.expressions import method_call, receiver, transposed
from gradlint.repair.scene import Scene

#: Calls by which a tensor of another shape is brought into one: they do not transpose.
_RESHAPES = ("reshape", "view", "reshape_as", "view_as")


def axes(scene: Scene) -> Iterator[Candidate]:
    """The whole gradient transposed, or one of its operands (cause ``transposed``)."""
    fault, tree = scene.fault, scene.tree
    square = fault.code in ("GL201", "GL401") and "transposed" in (fault.cause, fault.cause_text)
    if fault.cause != "transposed" and not square:
        return
    title = f"transpose the gradient of `{fault.input}`"
    for node in scene.sources(fault.input):
        inner = node
        while (call := method_call(inner, *_RESHAPES)) is not None:
            inner = receiver(call)
        if inner is not node:
            yield Candidate(title, (tree.replaced(node, transposed(tree, inner)),), Fit.NAMED)
        yield Candidate(title, (tree.replaced(node, transposed(tree, node)),), Fit.NAMED)
        for product in tree.within(node, libcst.BinaryOperation):
            if not isinstance(product.operator, libcst.MatrixMultiply):
                continue
            for side in (product.left, product.right):
                edit: Edit = tree.replaced(side, transposed(tree, side))
                yield Candidate(f"transpose {tree.code(side)}", (edit,), Fit.LIKELY)


FAMILY = (axes,)
