"""Candidates for gradients in another dtype, or on another device, than their input (GL203,
GL204)."""

from __future__ import annotations

from collections.abc import Iterator

import libcst

from gradlint.repair.candidate import Candidate, Edit, Fit
from gradlint.repair.expressions import as_operand, method_call, receiver
from gradlint.repair.scene import Scene
from gradlint.repair.tree import Tree

_CODES = ("GL203", "GL204", "GL904")

#: Calls at the end of an expression that bring it into a dtype, or onto a device, of their own.
_CASTS = ("half", "float", "double", "bfloat16", "to", "type", "cpu", "cuda")

#: Methods that move a tensor to a device.
_MOVES = ("to", "cpu", "cuda")

#: Functions of ``torch`` that make a tensor with the device and the dtype that they are told.
_FACTORIES = (
    *("zeros", "ones", "full", "empty", "tensor", "arange", "eye", "linspace", "rand", "randn"),
    *("zeros_like", "ones_like", "full_like", "empty_like", "as_tensor"),
)


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


def made_there(scene: Scene) -> Iterator[Candidate]:
    """Tensors that backward makes on the device, or in the dtype, of the incoming gradient; no
    call that moves to a device of its own."""
    fault, tree, backward = scene.fault, scene.tree, scene.backward
    if fault.code not in _CODES[:2] or backward is None or not scene.incoming:
        return
    kind = "device" if fault.code == "GL204" else "dtype"
    wanted = f"{scene.incoming[0]}.{kind}"
    together: list[Edit] = []
    for call in tree.within(backward.node, libcst.Call):
        edit = _made_with(tree, call, kind, wanted)
        moves = kind == "device" and method_call(call, *_MOVES) is not None
        if moves and all(isinstance(arg.value, libcst.SimpleString) for arg in call.args):
            edit = tree.replaced(call, tree.code(receiver(call)))
        if edit is None:
            continue
        together.append(edit)
        yield Candidate(f"use the {kind} of `{scene.incoming[0]}`", (edit,), Fit.NAMED)
    if len(together) > 1:
        title = f"use the {kind} of `{scene.incoming[0]}` in each place"
        yield Candidate(title, tuple(together), Fit.NAMED)


def _made_with(tree: Tree, call: libcst.Call, kind: str, wanted: str) -> Edit | None:
    """``kind=wanted`` in a call of ``torch`` that makes a tensor."""
    name = tree.code(call.func)
    if not name.startswith("torch.") or name.removeprefix("torch.") not in _FACTORIES:
        return None
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == kind:
            return tree.replaced(arg.value, wanted)
    if not call.args or any(arg.star for arg in call.args):
        return None
    end = tree.outer(call.args[-1].value)[1]
    return Edit(end, end, f", {kind}={wanted}")


FAMILY = (uncast, as_input, made_there)
