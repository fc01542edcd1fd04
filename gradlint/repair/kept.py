"""Candidates for tensors that are kept where autograd does not see them: on ``ctx``, on the class,
or through ``.data`` (GL603, GL604, GL608)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst

from gradlint.repair.candidate import Candidate, Edit, Fit
from gradlint.repair.scene import Scene

_CODES = ("GL603", "GL604", "GL608", "GL502")


def saved(scene: Scene) -> Iterator[Candidate]:
    """``save_for_backward`` for one attribute of ``ctx``, or for all that hold tensors."""
    if scene.fault.code not in _CODES or scene.saving is None or scene.backward is None:
        return
    if not (scene.own(scene.saving) and scene.own(scene.backward)) or not scene.saving.ctx:
        return
    kept = list(_kept(scene))
    choices = [[one] for one in kept] + ([kept] if len(kept) > 1 else [])
    for some in choices:
        edits = _moved(scene, some)
        names = ", ".join(f"`{name}`" for name, _, _ in some)
        if edits is not None:
            at_place = any(
                scene.tree.span(node)[0] <= scene.fault.start < scene.tree.span(node)[1]
                for _, node, _ in some
            )
            yield Candidate(
                f"keep {names} by save_for_backward()",
                edits,
                Fit.NAMED if at_place else Fit.LIKELY,
            )


def _kept(scene: Scene) -> Iterator[tuple[str, libcst.Assign, str]]:
    """Attributes of ``ctx`` that are assigned once: name, statement, text of the value."""
    assert scene.saving is not None
    tree, ctx = scene.tree, scene.saving.ctx
    plain = {one.name for one in scene.fault.known if one.shape is None}
    for node in tree.within(scene.saving.node, libcst.Assign):
        target = node.targets[0].target
        if len(node.targets) != 1 or not isinstance(target, libcst.Attribute):
            continue
        value = tree.code(node.value)
        simple = isinstance(node.value, (libcst.Name, libcst.Call, libcst.BinaryOperation))
        sizes = re.search(r"\.(shape|size|dtype|device|dim|numel|ndim|item)\b", value)
        if tree.code(target.value) == ctx and simple and not sizes and value not in plain:
            yield target.attr.value, node, value


def _moved(scene: Scene, kept: list[tuple[str, libcst.Assign, str]]) -> tuple[Edit, ...] | None:
    assert scene.saving is not None
    assert scene.backward is not None
    tree, ctx = scene.tree, scene.saving.ctx
    edits: list[Edit] = []
    names: list[str] = []
    values: list[str] = []
    body = tree.code(scene.backward.node)
    for name, node, value in kept:
        if re.search(rf"(?<![\w.]){name}\b(?!\s*=[^=])", body.replace(f".{name}", "")):
            return None  # backward uses the name for something else
        statement = tree.nearest(node, libcst.SimpleStatementLine)
        if statement is None or len(statement.body) != 1:
            return None
        # Read again in the method that keeps it, as in ``return ctx.y``: a name of its own.
        pattern = re.compile(rf"\b{ctx}\.{name}\b")
        again = len(pattern.findall(tree.code(scene.saving.node))) > 1
        local = value if isinstance(node.value, libcst.Name) else name
        if again or not isinstance(node.value, libcst.Name):
            edits.append(tree.replaced(node, f"{local} = {value}"))
            edits += _renamed(scene, scene.saving.node, f"{ctx}.{name}", local, but=node)
        elif scene.save is None and node is kept[0][1]:
            pass
        else:
            edits.append(tree.without(statement))
        edits += _renamed(scene, scene.backward.node, f"{scene.backward.ctx}.{name}", name)
        names.append(name)
        values.append(local)
    saves = _saves(scene, kept[0][1], values)
    unpacks = _unpacks(scene, names)
    if saves is None or unpacks is None:
        return None
    return tuple(edits + saves + unpacks)


def _renamed(
    scene: Scene,
    method: libcst.FunctionDef,
    old: str,
    new: str,
    but: libcst.CSTNode | None = None,
) -> list[Edit]:
    return [
        scene.tree.replaced(node, new)
        for node in scene.tree.within(method, libcst.Attribute)
        if scene.tree.code(node) == old
        and (but is None or all(one is not but for one in scene.tree.around(node)))
    ]


def _saves(scene: Scene, first: libcst.Assign, values: list[str]) -> list[Edit] | None:
    """The call that saves ``values``, with all that is saved already."""
    tree = scene.tree
    assert scene.saving is not None
    if scene.save is not None:
        if len(scene.saved) != len(scene.unpacked) or not scene.save.args:
            return None
        end = tree.outer(scene.save.args[-1].value)[1]
        return [Edit(end, end, "".join(f", {value}" for value in values))]
    line = f"{scene.saving.ctx}.save_for_backward({', '.join(values)})"
    again = len(re.findall(rf"\b{scene.saving.ctx}\.\w+", tree.code(scene.saving.node)))
    del again
    statement = tree.nearest(first, libcst.SimpleStatementLine)
    if statement is None:
        return None
    if isinstance(first.value, libcst.Name) and _once(scene, first):
        return [tree.replaced(first, line)]
    end = tree.offset(tree.positions[statement].end.line + 1, 0)
    return [Edit(end, end, f"{tree.line_of(statement)[1]}{line}{tree.newline}")]


def _once(scene: Scene, node: libcst.Assign) -> bool:
    """Whether the method that keeps it reads the attribute nowhere else."""
    assert scene.saving is not None
    code = scene.tree.code(node.targets[0].target)
    found = [
        one
        for one in scene.tree.within(scene.saving.node, libcst.Attribute)
        if scene.tree.code(one) == code
    ]
    return len(found) == 1


def _unpacks(scene: Scene, names: list[str]) -> list[Edit] | None:
    tree = scene.tree
    assert scene.backward is not None
    if scene.unpacking is not None:
        target = scene.unpacking.targets[0].target
        return [tree.replaced(target, ", ".join([*scene.unpacked, *names]))]
    if ".saved_tensors" in tree.code(scene.backward.node):
        return None
    first = scene.first_statement(scene.backward)
    if first is None:
        return None
    left = ", ".join(names) if len(names) > 1 else f"({names[0]},)"
    return [tree.line_before(first, f"{left} = {scene.backward.ctx}.saved_tensors")]


def from_container(scene: Scene) -> Iterator[Candidate]:
    """``save_for_backward`` for what lies in a dict or a tuple on ``ctx``."""
    tree, saving, backward = scene.tree, scene.saving, scene.backward
    if scene.fault.code != "GL604" or saving is None or backward is None or scene.save:
        return
    if not (scene.own(saving) and scene.own(backward)):
        return
    for node in tree.within(saving.node, libcst.Assign):
        target = node.targets[0].target
        if not isinstance(target, libcst.Attribute) or not isinstance(node.value, libcst.Dict):
            continue
        held = f"{backward.ctx}.{target.attr.value}"
        used = [
            one
            for one in tree.within(backward.node, libcst.Subscript)
            if tree.code(one.value) == held
        ]
        if len(used) != 1 or len(re.findall(re.escape(held), tree.code(backward.node))) != 1:
            continue
        key = ", ".join(tree.code(one) for one in used[0].slice)
        parts = {
            tree.code(one.key): one.value
            for one in node.value.elements
            if isinstance(one, libcst.DictElement)
        }
        if key not in parts:
            continue
        value = parts[key]
        names = (
            [value] if not isinstance(value, libcst.Tuple) else [e.value for e in value.elements]
        )
        text = ", ".join(tree.code(one) for one in names)
        yield Candidate(
            f"keep {text} by save_for_backward()",
            (
                tree.replaced(node, f"{saving.ctx}.save_for_backward({text})"),
                tree.replaced(
                    used[0],
                    f"{backward.ctx}.saved_tensors"
                    + ("" if isinstance(value, libcst.Tuple) else "[0]"),
                ),
            ),
            Fit.NAMED,
        )


def openly(scene: Scene) -> Iterator[Candidate]:
    """The tensor itself saved, not its ``.data`` or what is detached of it."""
    if scene.fault.code not in _CODES or scene.save is None:
        return
    tree = scene.tree
    if not scene.own(scene.saving):
        return
    for arg in scene.save.args:
        node = arg.value
        if isinstance(node, libcst.Attribute) and node.attr.value == "data":
            inner = node.value
        elif isinstance(node, libcst.Call) and tree.code(node).endswith(".detach()"):
            assert isinstance(node.func, libcst.Attribute)
            inner = node.func.value
        else:
            continue
        yield Candidate(
            f"save {tree.code(inner)} itself, whose version PyTorch checks",
            (tree.replaced(node, tree.code(inner)),),
            Fit.NAMED,
        )


def on_context(scene: Scene) -> Iterator[Candidate]:
    """On ``ctx`` what was kept on the class (GL608)."""
    tree, saving, backward = scene.tree, scene.saving, scene.backward
    if scene.fault.code != "GL608" or saving is None or backward is None:
        return
    owner = scene.owner.name.value
    for node in tree.within(saving.node, libcst.Assign):
        target = node.targets[0].target
        if isinstance(target, libcst.Attribute) and tree.code(target.value) == owner:
            name = target.attr.value
            edits = [
                *_renamed(scene, saving.node, f"{owner}.{name}", f"{saving.ctx}.{name}"),
                *_renamed(scene, backward.node, f"{owner}.{name}", f"{backward.ctx}.{name}"),
            ]
            yield Candidate(f"keep `{name}` on ctx, not on the class", tuple(edits), Fit.NAMED)


FAMILY = (saved, from_container, openly, on_context)
