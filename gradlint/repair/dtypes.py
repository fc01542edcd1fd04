"""Candidates for gradients in another dtype, or on another device, than their input (GL203,
GL204)."""

from __future__ import annotations

from collections.abc import Iterator

import libcst

from gradlint.repair.candidate import Candidate, Edit, Fit
from gradlint.repair.expressions import as_operand, method_call, receiver
from gradlint.repair.scene import Scene

_CODES = ("GL203", "GL204", "GL904")

#: Calls at the end of an expression that bring it into a dtype, or onto a device, of their own.
_CASTS = ("half", "float", "double", "bfloat16", "to", "type", "cpu", "cuda")


def uncast(scene: Scene) -> Iterator[Candidate]:
    """Without the cast at the end."""
    if scene.fault.code not in _CODES:
        return
    tree = scene.tree
    for node in scene.sources(scene.fault.input):
        call = method_call(node, *_CASTS)
        if call is None or not isinstance(call.func, libcst.Attribute):
            continue
        inner = receiver(call)
        whole = isinstance(tree.parent(node), (libcst.Return, libcst.Assign))
        yield Candidate(
            f"return the gradient of `{scene.fault.input}` without {call.func.attr.value}()",
            (tree.replaced(node, tree.inner(inner) if whole else tree.code(inner)),),
            Fit.NAMED,
        )


def as_input(scene: Scene) -> Iterator[Candidate]:
    """In the dtype, and on the device, of the input."""
    fault, tree, forward = scene.fault, scene.tree, scene.forward
    if fault.code not in _CODES or forward is None:
        return
    kinds = ("device",) if fault.code == "GL204" else ("dtype",)
    names = [fault.input, *fault.others] if fault.input else forward.parameters
    for kind in kinds:
        together: list[Edit] = []
        for name in names:
            found = scene.reach(name)
            if found is None:
                continue
            for node in scene.returned_for(name):
                if tree.code(node) == "None":
                    continue
                text = f"{as_operand(tree, node)}.to({found[0]}.{kind})"
                one = (tree.replaced(node, text), *found[1])
                together += one
                yield Candidate(
                    f"return the gradient of `{name}` in the {kind} of `{name}`", one, Fit.LIKELY
                )
        if len(together) > 1:
            yield Candidate(
                f"return each gradient in the {kind} of its input", tuple(together), Fit.LIKELY
            )


FAMILY = (uncast, as_input)
