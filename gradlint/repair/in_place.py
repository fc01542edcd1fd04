"""Candidates for an operator that changes its input in place and returns it (GL601): declaring it
by ``mark_dirty``. Where the author says that this is meant, it is the first candidate."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import libcst

from gradlint.repair.candidate import Candidate, Edit, Fit
from gradlint.repair.expressions import method_call, receiver
from gradlint.repair.scene import Method, Scene
from gradlint.targets.intentions import asks_for_in_place, names_in_place, tells_of_in_place

#: What a reader must know of an operator that is mended so, or in the other way.
REFUSED = (
    "as by PyTorch's own functions that work in place, a leaf tensor that requires grad is refused "
    "then"
)
COPIED = (
    "callers find the result in what is returned, no longer in `{name}`; if it was meant to be "
    "changed in place, keep the write and declare it: ctx.mark_dirty({name})"
)


def returned_input(scene: Scene) -> str:
    """The argument of the finding, if forward returns that tensor itself; "" if it does not."""
    name = scene.fault.input
    return name if name and name in _returned(scene) else ""


def is_meant(scene: Scene) -> bool:
    """Whether the name of the class, its docstrings, its comments or an argument say that it works
    in place."""
    owner = scene.owner
    flags = scene.forward.parameters if scene.forward else ()
    return (
        names_in_place(owner.name.value)
        or any(map(asks_for_in_place, flags))
        or tells_of_in_place(scene.prose(owner))
    )


def is_for_effect(scene: Scene) -> bool:
    """Whether forward writes to an argument and never reads it again (GL601): the caller is to find
    something there, a statistic, say, and a copy would lose it."""
    forward, statement, tree, name = scene.forward, scene.statement, scene.tree, scene.fault.input
    if scene.fault.code != "GL601" or forward is None or statement is None or not name:
        return False
    if not scene.fault.label.startswith("written") or not scene.own(forward):
        return False
    only = statement.body[0] if len(statement.body) == 1 else None
    if not isinstance(only, (libcst.Expr, libcst.AugAssign)):
        return False  # its value is used
    first, last = tree.span(statement)
    again = [
        tree.span(loop)
        for loop in tree.around(statement)
        if isinstance(loop, (libcst.For, libcst.While))
    ]
    starts = [
        tree.span(one)[0] for one in tree.within(forward.node, libcst.Name) if one.value == name
    ]
    return not any(
        start > last or any(a <= start <= b and not first <= start <= last for a, b in again)
        for start in starts
    )


def _returned(scene: Scene) -> list[str]:
    """The arguments that a return statement of forward returns themselves."""
    forward = scene.forward
    if forward is None:
        return []
    found = [
        _written(scene, forward, node)
        for statement in scene.returns_of(forward)
        for node in scene.elements(statement)
    ]
    return [one for one in dict.fromkeys(found) if one]


def _written(scene: Scene, forward: Method, node: libcst.BaseExpression) -> str:
    """The argument that ``node`` is, after the methods that write to it: ``x.mul_(2).add_(1)``,
    ``torch.relu_(x)``, or a name for one of these; "" if it is another tensor."""
    for _ in range(len(forward.node.body.children) + 8):  # no name stands for itself
        made = scene.definition(node)
        if isinstance(node, libcst.Name):
            if made is None:
                return node.value if node.value in forward.parameters else ""
            node = made
            continue
        if not isinstance(node, libcst.Call) or not isinstance(node.func, libcst.Attribute):
            return ""
        name = node.func.attr.value
        keeps = name.endswith("_") and not name.endswith("__")
        flag = any(
            arg.keyword is not None
            and arg.keyword.value == "inplace"
            and scene.tree.code(arg.value) in ("True", *forward.parameters)
            for arg in node.args
        )
        if not keeps and not flag:
            return ""
        base = scene.tree.code(receiver(node))
        of_torch = base.split(".")[0] in ("torch", "F", "nn")
        if of_torch and not node.args:
            return ""
        node = node.args[0].value if of_torch else receiver(node)
    return ""


def declared(scene: Scene) -> Iterator[Candidate]:
    """``mark_dirty`` for the argument, beside what is declared already."""
    forward, saving, tree = scene.forward, scene.saving, scene.tree
    if scene.fault.code != "GL601" or forward is None or saving is None:
        return
    name = returned_input(scene)
    if not name or not saving.ctx or not scene.own(saving):
        return
    names = [name, *(one for one in scene.fault.others if one in _returned(scene))]
    fit = Fit.NAMED if is_meant(scene) else Fit.LIKELY
    shown = " and ".join(f"`{one}`" for one in names)
    title = f"declare that forward changes {shown} in place"
    known = [one for one in tree.within(saving.node, libcst.Call) if method_call(one, "mark_dirty")]
    if known:
        last = known[0].args[-1] if known[0].args else None
        if len(known) == 1 and last is not None:
            end = tree.outer(last.value)[1]
            yield Candidate(title, (Edit(end, end, f", {', '.join(names)}"),), fit, REFUSED)
        return
    call = f"{saving.ctx}.mark_dirty({', '.join(names)})"
    for place in _places(scene, saving, names):
        yield Candidate(title, (tree.line_before(place, call),), fit, REFUSED)
        for flag in forward.parameters if saving is forward else ():
            if asks_for_in_place(flag):
                lines = (f"if {flag}:", f"    {call}")
                yield Candidate(
                    f"{title}, where `{flag}` asks for it",
                    (tree.line_before(place, *lines),),
                    fit,
                    REFUSED,
                )


def _places(scene: Scene, saving: Method, names: list[str]) -> Iterator[libcst.CSTNode]:
    """Statements of ``saving`` before which the arguments can be declared: the one that writes,
    then those that return; in ``setup_context`` the first one that knows them."""
    tree = scene.tree
    if saving is scene.forward:
        if scene.fault.label.startswith("written") and scene.statement is not None:
            yield scene.statement
        for statement in scene.returns_of(saving):
            line = tree.nearest(statement, libcst.SimpleStatementLine)
            if line is not None:
                yield line
        return
    statements = list(saving.statements)
    for before, after in itertools.pairwise(statements):
        targets = [
            one.target for node in tree.within(before, libcst.Assign) for one in node.targets
        ]
        given = {one.value for node in targets for one in tree.within(node, libcst.Name)}
        if given.issuperset(names):
            yield after
            return


FAMILY = (declared,)
