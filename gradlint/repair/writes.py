"""Candidates for writes to what belongs to others: inputs, incoming gradients, saved tensors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import libcst

from gradlint.repair.candidate import Candidate, Edit, Fit
from gradlint.repair.expressions import as_operand, method_call, receiver
from gradlint.repair.in_place import COPIED, is_for_effect, is_meant, returned_input
from gradlint.repair.scene import Scene

_CODES = ("GL601", "GL602", "GL603", "GL702", "GL605")

_OPERATORS: dict[type[libcst.BaseAugOp], str] = {
    libcst.AddAssign: "+",
    libcst.SubtractAssign: "-",
    libcst.MultiplyAssign: "*",
    libcst.DivideAssign: "/",
    libcst.PowerAssign: "**",
    libcst.MatrixMultiplyAssign: "@",
}

#: Methods that may return the tensor itself where a copy is meant.
_NO_COPY = ("contiguous", "detach", "to", "view", "view_as", "reshape", "float", "double")


def out_of_place(scene: Scene) -> Iterator[Candidate]:
    """The operation that makes a new tensor, in place of the one that writes; where forward returns
    what it writes to, it is said which way this takes."""
    if scene.fault.code not in _CODES:
        return
    if is_for_effect(scene):
        return
    name = returned_input(scene) if scene.fault.code == "GL601" else ""
    for one in _out_of_place(scene):
        if name:
            fit = max(one.fit, Fit.LIKELY) if is_meant(scene) else one.fit
            one = replace(one, fit=fit, note=COPIED.format(name=name))
        yield one


def _out_of_place(scene: Scene) -> Iterator[Candidate]:
    tree = scene.tree
    for statement in _statements(scene):
        for call in tree.within(statement, libcst.Call):
            yield from _method(scene, call)
            yield from _into(scene, call)
            yield from _flag(scene, call)
        for node in tree.within(statement, libcst.AugAssign):
            sign = _OPERATORS.get(type(node.operator))
            if sign is not None and isinstance(node.target, libcst.Name):
                name = node.target.value
                value = tree.code(node.value)
                tight = isinstance(node.value, (libcst.Name, libcst.Call, libcst.Attribute))
                new = value if tight or sign == "+" else as_operand(tree, node.value)
                yield Candidate(
                    f"make a new tensor of `{name}` in place of writing to it",
                    (tree.replaced(node, f"{name} = {name} {sign} {new}"),),
                    Fit.NAMED,
                )


def _statements(scene: Scene) -> Iterator[libcst.CSTNode]:
    """The statement at the place, or, where that is only the method or class, all of its method."""
    node = scene.statement
    if scene.fault.label.startswith("written") and node is not None:
        yield node
        return
    if scene.fault.code == "GL601" or scene.around is None:
        if scene.forward is not None and scene.own(scene.forward):
            yield scene.forward.node
        return
    yield scene.around.node


def _method(scene: Scene, call: libcst.Call) -> Iterator[Candidate]:
    """``x.mul_(2)`` → ``x.mul(2)``; as a statement ``x = x.mul(2)``."""
    found = method_call(call)
    if found is None or not isinstance(found.func, libcst.Attribute):
        return
    name, tree = found.func.attr.value, scene.tree
    if not name.endswith("_") or name.endswith("__") or name == "requires_grad_":
        return
    start, end = tree.span(found.func.attr)
    edits = [Edit(start, end, name.removesuffix("_"))]
    target = receiver(found)
    if isinstance(target, libcst.Attribute) and target.attr.value == "data":
        first, last = tree.outer(target)
        target = target.value
        edits.append(Edit(first, last, tree.code(target)))
    copied = method_call(target, "clone") is not None
    if isinstance(tree.parent(call), libcst.Expr):
        if not isinstance(target, libcst.Name):
            return
        first = tree.outer(call)[0]
        edits.append(Edit(first, first, f"{target.value} = "))
    if not copied:
        yield Candidate(
            f"use {name.removesuffix('_')}(), which makes a new tensor, in place of {name}()",
            tuple(edits),
            Fit.NAMED,
        )


def _into(scene: Scene, call: libcst.Call) -> Iterator[Candidate]:
    """No ``out=``."""
    tree = scene.tree
    for place, arg in enumerate(call.args):
        if arg.keyword is None or arg.keyword.value != "out":
            continue
        rest = [tree.code(one) for k, one in enumerate(call.args) if k != place]
        texts = [text.rstrip().rstrip(",").rstrip() for text in rest]
        start, end = tree.outer(call)
        head = tree.code(call.func)
        yield Candidate(
            f"let {head}() make a new tensor: leave out={tree.code(arg.value)} away",
            (Edit(start, end, f"{head}({', '.join(texts)})"),),
            Fit.NAMED,
        )


def _flag(scene: Scene, call: libcst.Call) -> Iterator[Candidate]:
    """No ``inplace=True``."""
    tree = scene.tree
    for place, arg in enumerate(call.args):
        if arg.keyword is None or arg.keyword.value != "inplace" or tree.code(arg.value) != "True":
            continue
        head = tree.code(call.func)
        before = tree.outer(call.args[place - 1].value)[1] if place else tree.outer(call.func)[1]
        edit = Edit(before, tree.outer(arg.value)[1], "" if place else "(")
        yield Candidate(f"let {head}() make a new tensor", (edit,), Fit.NAMED)


def copied(scene: Scene) -> Iterator[Candidate]:
    """A copy, made before it is written to."""
    if scene.fault.code not in _CODES or is_for_effect(scene):
        return
    tree = scene.tree
    statement = scene.statement
    method = scene.around
    if method is None:
        return
    names = _written_names(scene, statement)
    for name in names:
        for node in tree.within(method.node, libcst.Assign):
            target = node.targets[0].target
            if not isinstance(target, libcst.Name) or target.value != name:
                continue
            call = method_call(node.value, *_NO_COPY)
            if call is not None and isinstance(call.func, libcst.Attribute):
                start, end = tree.outer(call)
                base = tree.code(receiver(call))
                yield Candidate(
                    f"make a copy: {call.func.attr.value}() may return the same tensor",
                    (Edit(start, end, f"{base}.clone()"),),
                    Fit.NAMED,
                )
            elif isinstance(node.value, (libcst.Name, libcst.Attribute)):
                end = tree.outer(node.value)[1]
                yield Candidate(
                    f"write to a copy of `{tree.code(node.value)}`",
                    (Edit(end, end, ".clone()"),),
                    Fit.LIKELY,
                )
        known = [*method.parameters, *scene.unpacked]
        if name in known and statement is not None:
            form = ""
            if scene.fault.code == "GL702":
                form = "memory_format=torch.contiguous_format"
            yield Candidate(
                f"write to a copy of `{name}`",
                (tree.line_before(statement, f"{name} = {name}.clone({form})"),),
                Fit.LIKELY,
            )


def _written_names(scene: Scene, statement: libcst.CSTNode | None) -> list[str]:
    """The names that the statement at the place writes to, and those that the message names."""
    tree, found = scene.tree, []
    for node in tree.within(statement, libcst.Subscript):
        if isinstance(node.value, libcst.Name) and isinstance(
            tree.parent(node), (libcst.AssignTarget, libcst.AugAssign)
        ):
            found.append(node.value.value)
    for added in tree.within(statement, libcst.AugAssign):
        if isinstance(added.target, libcst.Name):
            found.append(added.target.value)
    for call in tree.within(statement, libcst.Call):
        attribute = call.func
        if isinstance(attribute, libcst.Attribute) and attribute.attr.value.endswith("_"):
            base = attribute.value
            while isinstance(base, (libcst.Attribute, libcst.Subscript)):
                base = base.value
            if isinstance(base, libcst.Name):
                found.append(base.value)
    if scene.fault.input:
        found.append(scene.fault.input)
    if "grad_output" in scene.fault.message and scene.incoming:
        found.append(scene.incoming[0])
    return list(dict.fromkeys(found))


def not_the_input(scene: Scene) -> Iterator[Candidate]:
    """A copy where forward returns, or works on, the memory of an input (GL601)."""
    if scene.fault.code != "GL601" or scene.forward is None or not scene.own(scene.forward):
        return
    tree = scene.tree
    for statement in scene.returns_of(scene.forward):
        for node in scene.elements(statement):
            call = method_call(node, *_NO_COPY)
            if call is not None and isinstance(receiver(call), libcst.Name):
                yield Candidate(
                    "return a copy of the input",
                    (tree.replaced(node, f"{tree.code(receiver(call))}.clone()"),),
                    Fit.NAMED,
                )
    for call in tree.within(scene.forward.node, libcst.Call):
        if method_call(call, "numpy") is None or call.args:
            continue
        base = receiver(call)
        end = tree.outer(base)[1]
        yield Candidate(
            "let numpy work on a copy of the input",
            (Edit(end, end, ".clone()"),),
            Fit.LIKELY,
        )


def kept_in_place(scene: Scene) -> Iterator[Candidate]:
    """No statement in backward that changes what is kept for it (GL603, GL605)."""
    if scene.fault.code not in ("GL603", "GL605"):
        return
    tree = scene.tree
    statement = scene.statement
    if statement is None or len(statement.body) != 1:
        return
    only = statement.body[0]
    if isinstance(only, (libcst.Expr, libcst.Del)):
        yield Candidate(
            "leave out the statement that changes what the next backward reads",
            (tree.without(statement),),
            Fit.LIKELY,
        )


def not_consumed(scene: Scene) -> Iterator[Candidate]:
    """What backward reads from ``ctx`` stays there (GL605)."""
    backward, tree = scene.backward, scene.tree
    if scene.fault.code not in ("GL605", "GL004") or backward is None or not backward.ctx:
        return
    for removed in tree.within(backward.node, libcst.Del):
        statement = tree.nearest(removed, libcst.SimpleStatementLine)
        if statement is not None and len(statement.body) == 1:
            yield Candidate(
                "keep what backward reads: another backward may follow",
                (tree.without(statement),),
                Fit.NAMED,
            )
    for node in tree.within(backward.node, libcst.Assign):
        target = node.targets[0].target
        if not isinstance(target, libcst.Tuple) or not isinstance(node.value, libcst.Tuple):
            continue
        pairs = list(zip(target.elements, node.value.elements, strict=False))
        kept = [
            (tree.code(a.value), tree.code(b.value))
            for a, b in pairs
            if not tree.code(a.value).startswith(f"{backward.ctx}.")
        ]
        if 0 < len(kept) < len(pairs):
            left = ", ".join(a for a, _ in kept)
            right = ", ".join(b for _, b in kept)
            yield Candidate(
                "keep what backward reads: another backward may follow",
                (tree.replaced(node, f"{left} = {right}"),),
                Fit.NAMED,
            )


def own_buffer(scene: Scene) -> Iterator[Candidate]:
    """A fresh tensor of zeros in backward in place of one that was saved to be written to."""
    tree = scene.tree
    if scene.fault.code not in ("GL603", "GL605") or scene.save is None:
        return
    statement = tree.nearest(scene.unpacking, libcst.SimpleStatementLine)
    if statement is None or len(scene.saved) != len(scene.unpacked):
        return
    for place, (text, name) in enumerate(zip(scene.saved, scene.unpacked, strict=True)):
        if not re.match(r"torch\.(zeros|empty)_like\(", text):
            continue
        new = text
        for kept, held in zip(scene.saved, scene.unpacked, strict=True):
            new = re.sub(rf"\b{re.escape(kept)}\b", held, new) if kept != text else new
        saved = ", ".join(one for k, one in enumerate(scene.saved) if k != place)
        left = [one for k, one in enumerate(scene.unpacked) if k != place]
        assert scene.unpacking is not None
        target = scene.unpacking.targets[0].target
        start, end = tree.outer(scene.save)
        yield Candidate(
            f"make `{name}` anew in every backward",
            (
                Edit(start, end, f"{tree.code(scene.save.func)}({saved})"),
                tree.replaced(target, ", ".join(left) if len(left) != 1 else f"({left[0]},)"),
                Edit(
                    *(tree.offset(tree.positions[statement].end.line + 1, 0),) * 2,
                    f"{tree.line_of(statement)[1]}{name} = {new}{tree.newline}",
                ),
            ),
            Fit.LIKELY,
        )


FAMILY = (
    out_of_place,
    copied,
    not_the_input,
    not_consumed,
    kept_in_place,
    own_buffer,
)
