"""Candidates for gradients that are wrong, or not finite, at other sizes: of one, of none, or
larger than a number in the source (GL705, GL706, GL707)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst

from gradlint.repair.candidate import Candidate, Edit, Fit
from gradlint.repair.expressions import method_call, receiver
from gradlint.repair.scene import Scene

_CODES = ("GL705", "GL706", "GL707", "GL607")


def of_the_tensor(scene: Scene) -> Iterator[Candidate]:
    """The size of an axis in place of a number that it happens to have."""
    fault, tree, backward = scene.fault, scene.tree, scene.backward
    if fault.code not in ("GL706", "GL401") or backward is None or not scene.own(backward):
        return
    if fault.code == "GL401" and fault.cause not in ("scaled", "argument-left-out"):
        return
    for node in tree.within(backward.node, libcst.Integer):
        if isinstance(tree.parent(node), (libcst.Index, libcst.Arg, libcst.Slice)):
            continue
        number = int(node.evaluated_value)
        for one in fault.known:
            for axis, size in enumerate(one.shape or ()):
                if size != number or size < 2:
                    continue
                names = [text for text in scene.in_hand if text == one.name]
                held = [scene.in_hand[text] for text in names]
                # Whatever else backward holds may have that size too: checks tell.
                for name in dict.fromkeys([*held, *scene.unpacked, *scene.incoming]):
                    last = axis == len(one.shape or ()) - 1
                    text = f"{name}.shape[{-1 if last else axis}]"
                    yield Candidate(
                        f"use {text} in place of the number {number}",
                        (tree.replaced(node, text),),
                        Fit.NAMED if name in held else Fit.LIKELY,
                    )


def uncut(scene: Scene) -> Iterator[Candidate]:
    """All of an axis in place of its first elements."""
    fault, tree, backward = scene.fault, scene.tree, scene.backward
    if fault.code != "GL706" or backward is None or not scene.own(backward):
        return
    for node in tree.within(backward.node, libcst.Subscript):
        text = ", ".join(tree.code(one) for one in node.slice).replace(" ", "")
        if re.fullmatch(r"(?:\.\.\.,|:,)*:\d+(?:,:|,\.\.\.)*", text):
            yield Candidate(
                f"take all of {tree.code(node.value)}, whatever its size",
                (tree.replaced(node, tree.code(node.value)),),
                Fit.NAMED,
            )


def flags_of_the_class(scene: Scene) -> Iterator[Candidate]:
    """The other value of a flag that the class holds, or that is passed by name."""
    tree = scene.tree
    if scene.fault.code != "GL706":
        return
    for owner in scene.lineage[:1]:
        for node in tree.within(owner, libcst.Name):
            if node.value not in ("True", "False"):
                continue
            other = "False" if node.value == "True" else "True"
            parent = tree.parent(node)
            if isinstance(parent, libcst.Arg) and parent.keyword is not None:
                if parent.keyword.value == "keepdim":
                    continue
                yield Candidate(
                    f"pass {parent.keyword.value}={other}",
                    (tree.replaced(node, other),),
                    Fit.LIKELY,
                )
    for tuple_ in tree.within(scene.owner, libcst.Tuple):
        assigned = tree.parent(tuple_)
        if not isinstance(assigned, libcst.Assign):
            continue
        for element in tuple_.elements:
            if tree.code(element.value) in ("True", "False"):
                other = "False" if tree.code(element.value) == "True" else "True"
                yield Candidate(
                    f"set the flag of the class to {other}",
                    (tree.replaced(element.value, other),),
                    Fit.LIKELY,
                )


def zeroed(scene: Scene) -> Iterator[Candidate]:
    """Zeros where memory is left as it was."""
    tree = scene.tree
    if scene.fault.code not in (*_CODES, "GL606", "GL401"):
        return
    for method in (scene.backward, scene.forward):
        if method is None or not scene.own(method):
            continue
        for call in tree.within(method.node, libcst.Call):
            code = tree.code(call.func)
            if re.search(r"(torch\.|\.new_)empty(_like)?$", code):
                yield Candidate(
                    "begin with zeros where not every element is written",
                    (tree.replaced(call.func, code.replace("empty", "zeros")),),
                    Fit.LIKELY,
                )


def sums(scene: Scene) -> Iterator[Candidate]:
    """A sum in place of a mean that is multiplied by the number of what it is taken over."""
    tree = scene.tree
    if scene.fault.code not in _CODES:
        return
    for source in scene.sources(scene.fault.input):
        for node in tree.within(source, libcst.BinaryOperation):
            if not isinstance(node.operator, libcst.Multiply):
                continue
            for side, other in ((node.left, node.right), (node.right, node.left)):
                call = method_call(side, "mean")
                if call is None or not re.search(
                    r"len\(|\.shape|\.size\(|\.numel\(", tree.code(other)
                ):
                    continue
                assert isinstance(call.func, libcst.Attribute)
                start, end = tree.outer(call)
                first, last = tree.span(call.func.attr)
                text = tree.text[start:first] + "sum" + tree.text[last:end]
                yield Candidate(
                    "take the sum: a mean of nothing is not a number",
                    (tree.replaced(node, text),),
                    Fit.NAMED,
                )


def empty_guard(scene: Scene) -> Iterator[Candidate]:
    """Zeros for empty tensors, and nothing else."""
    tree, backward, forward = scene.tree, scene.backward, scene.forward
    if scene.fault.code != "GL705" or backward is None or forward is None:
        return
    if not scene.own(backward):
        return
    after = tree.nearest(scene.unpacking, libcst.SimpleStatementLine)
    held = [
        scene.in_hand.get(name)
        for name in forward.parameters
        if any(one.name == name and one.shape is not None for one in scene.fault.known)
    ]
    if after is None or not held or any(one is None for one in held):
        return
    numbers = len(forward.parameters) - len(held)
    if numbers:
        return
    zeros = ", ".join(f"torch.zeros_like({one})" for one in held)
    indent = tree.line_of(after)[1]
    end = tree.offset(tree.positions[after].end.line + 1, 0)
    for one in held:
        lines = [f"if {one}.numel() == 0:", f"    return {zeros}"]
        text = "".join(f"{indent}{line}{tree.newline}" for line in lines)
        yield Candidate(f"return zeros where `{one}` is empty", (Edit(end, end, text),), Fit.LIKELY)


def by_elements(scene: Scene) -> Iterator[Candidate]:
    """The formula on whole tensors in place of a loop over the first axis."""
    tree, backward = scene.tree, scene.backward
    if scene.fault.code not in ("GL707", "GL705") or backward is None or not scene.own(backward):
        return
    for call in tree.within(backward.node, libcst.Call):
        name = tree.code(call.func)
        if name in ("torch.cat", "torch.stack", "torch.concatenate") and call.args:
            made = call.args[0].value
            if isinstance(made, libcst.ListComp):
                yield from _whole(scene, call, made.for_in, tree.code(made.elt))
    for loop in tree.within(backward.node, libcst.For):
        body = loop.body.body
        if len(body) != 1 or not isinstance(body[0], libcst.SimpleStatementLine):
            continue
        only = body[0].body[0]
        if not isinstance(only, libcst.Assign) or not isinstance(loop.target, libcst.Name):
            continue
        target = only.targets[0].target
        index = rf"\[{loop.target.value}\]"
        if isinstance(target, libcst.Subscript) and re.search(index + "$", tree.code(target)):
            value = re.sub(index, "", tree.code(only.value))
            if not re.search(rf"\b{loop.target.value}\b", value):
                start, end = tree.span(loop)
                yield Candidate(
                    "use the formula on whole tensors in place of the loop",
                    (Edit(start, end, f"{tree.code(target.value)} = {value}"),),
                    Fit.LIKELY,
                )


def _whole(
    scene: Scene, call: libcst.Call, loop: libcst.CompFor, element: str
) -> Iterator[Candidate]:
    tree = scene.tree
    target, over = tree.code(loop.target), loop.iter
    text = ""
    if isinstance(over, (libcst.Tuple, libcst.List)) and len(over.elements) == 1:
        text = re.sub(rf"\b{target}\b", tree.code(over.elements[0].value), element)
    elif tree.code(over).startswith("range("):
        text = re.sub(rf"\[{target}\]", "", element)
    if text and not re.search(rf"\b{target}\b", text):
        yield Candidate(
            "use the formula on whole tensors in place of their parts",
            (tree.replaced(call, text),),
            Fit.LIKELY,
        )


def unviewed(scene: Scene) -> Iterator[Candidate]:
    """Without views that lead back to where they began."""
    tree = scene.tree
    if scene.fault.code not in (*_CODES, "GL701"):
        return
    for source in scene.sources(scene.fault.input):
        for call in tree.within(source, libcst.Call):
            outer = method_call(call, "view", "reshape")
            if outer is None:
                continue
            inner = method_call(receiver(outer), "view", "reshape")
            if inner is not None and ".shape" in tree.code(outer.args[0].value):
                base = receiver(inner)
                whole = isinstance(tree.parent(call), libcst.Return)
                yield Candidate(
                    "leave the views out, which lead back to where they began",
                    (tree.replaced(call, tree.inner(base) if whole else tree.code(base)),),
                    Fit.LIKELY,
                )


FAMILY = (
    of_the_tensor,
    uncut,
    flags_of_the_class,
    sums,
    zeroed,
    empty_guard,
    by_elements,
    unviewed,
)
