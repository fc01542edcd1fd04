"""Candidates that declare what an operator is meant to do: outputs without a gradient, one
derivative only, a surrogate."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst

from gradlint.repair.candidate import Candidate, Edit, Fit, changed
from gradlint.repair.expressions import TIGHT, method_call, receiver
from gradlint.repair.scene import Scene
from gradlint.repair.tree import Tree
from gradlint.targets.intentions import names_surrogate, tells_of_surrogate

#: Names of parameters that are not used on purpose.
_UNUSED = re.compile(r"_|unused", re.IGNORECASE)

_ONCE = "once_differentiable"


def surrogate(scene: Scene) -> Iterator[Candidate]:
    """A surrogate declared, where the class says that one is meant."""
    fault, tree = scene.fault, scene.tree
    if fault.cause != "straight-through" or not fault.input or not _meant(scene):
        return
    texts = [inlined(scene, fault.input)]
    texts += [tree.code(node) for node in scene.returned_for(fault.input)]
    for text in dict.fromkeys(text for text in texts if text):
        for name in scene.incoming[:1]:
            text = re.sub(rf"\b{name}\b", "grad_output", text)
        text = re.sub(r"\bgrad_output\.clone\(\)", "grad_output", " ".join(text.split()))
        line = f"surrogate = {{{_quoted(fault.input)}: {_quoted(text)}}}"
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


def _meant(scene: Scene) -> bool:
    """Whether the class, or a name in its backward, says that a surrogate is meant."""
    backward = scene.backward.node if scene.backward else None
    names = [one.value for one in scene.tree.within(backward, libcst.Name)]
    return (
        any(map(names_surrogate, (scene.owner.name.value, *names)))
        or tells_of_surrogate(scene.prose(scene.owner))
        or (backward is not None and tells_of_surrogate(scene.prose(backward), of_backward=True))
    )


def _quoted(text: str) -> str:
    return f'"{text}"' if text.isprintable() and not {'"', "\\"} & {*text} else repr(text)


def inlined(scene: Scene, name: str) -> str:
    """What backward returns for the argument ``name``, in the arguments of forward and the
    incoming gradients; "" where backward does more than to give names to expressions."""
    tree, forward, backward = scene.tree, scene.forward, scene.backward
    if forward is None or backward is None or name not in forward.parameters:
        return ""
    kept = {here: there for there, here in scene.in_hand.items()}
    known: dict[str, str] = {}
    for line in backward.statements:
        only = line.body[0] if isinstance(line, libcst.SimpleStatementLine) else None
        if only is None or len(line.body) != 1:  # type: ignore[attr-defined]
            return ""
        if isinstance(only, libcst.Return):
            elements = scene.elements(only)
            place = forward.parameters.index(name)
            return _bare(tree, elements[place], known, kept) if place < len(elements) else ""
        if only is scene.unpacking:
            known.update(zip(scene.unpacked, scene.saved, strict=False))
            continue
        if not isinstance(only, libcst.Assign) or len(only.targets) != 1:
            return ""
        target = only.targets[0].target
        if not isinstance(target, libcst.Name):
            return ""
        value = _written(tree, only.value, known, kept)
        known[target.value] = value if isinstance(only.value, TIGHT) else f"({value})"
    return ""


def _bare(
    tree: Tree, node: libcst.BaseExpression, known: dict[str, str], kept: dict[str, str]
) -> str:
    """As :func:`_written`, without the parentheses that a name's value needs in an expression."""
    text = _written(tree, node, known, kept)
    single = isinstance(node, libcst.Name) and text.startswith("(")
    return text[1:-1] if single else text


def _written(
    tree: Tree, node: libcst.BaseExpression, known: dict[str, str], kept: dict[str, str]
) -> str:
    """``node`` with what its names, and attributes of the context, stand for."""
    start, end = tree.span(node)
    edits = [
        Edit(*tree.span(part), kept[tree.code(part)])
        for part in tree.within(node, libcst.Attribute)
        if tree.code(part) in kept
    ]
    for name in tree.within(node, libcst.Name):
        above = tree.parent(name)
        is_attribute = isinstance(above, libcst.Attribute) and above.attr is name
        is_keyword = isinstance(above, libcst.Arg) and above.keyword is name
        if name.value in known and not is_attribute and not is_keyword:
            edits.append(Edit(*tree.span(name), known[name.value]))
    moved = [Edit(one.start - start, one.end - start, one.text) for one in edits]
    return changed(tree.text[start:end], moved) or ""


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
    """``mark_non_differentiable`` for an output whose gradient backward leaves out on purpose, as
    the name of its parameter says."""
    saving, backward, tree = scene.saving, scene.backward, scene.tree
    if scene.fault.code != "GL401" or saving is None or backward is None or not saving.ctx:
        return
    read = {one.value for one in tree.within(backward.node.body, libcst.Name)}
    for statement in scene.returns_of(scene.forward) if saving is scene.forward else ():
        line = tree.nearest(statement, libcst.SimpleStatementLine)
        outputs = scene.elements(statement)
        if line is None or len(outputs) != len(scene.incoming):
            continue
        names = [
            tree.code(node)
            for node, incoming in zip(outputs, scene.incoming, strict=True)
            if isinstance(node, libcst.Name) and incoming not in read and _UNUSED.match(incoming)
        ]
        if names:
            text = f"{saving.ctx}.mark_non_differentiable({', '.join(names)})"
            shown = " and ".join(f"`{name}`" for name in names)
            yield Candidate(
                f"declare that {shown} has no gradient"
                if len(names) == 1
                else f"declare that {shown} have no gradients",
                (tree.line_before(line, text),),
                Fit.LIKELY,
                note="backward leaves the gradient that comes in for it out; declared so, the "
                "output does not require grad, and nobody takes a zero for its gradient",
            )


def connected(scene: Scene) -> Iterator[Candidate]:
    """Without ``.detach()`` and ``.data`` in backward, where second derivatives are lost."""
    backward, tree = scene.backward, scene.tree
    if scene.fault.code not in ("GL501", "GL502") or backward is None or not scene.own(backward):
        return
    edits = []
    for node in tree.within(backward.node.body, libcst.BaseExpression):  # type: ignore[type-abstract]
        if method_call(node, "detach") is not None and isinstance(node, libcst.Call):
            inner: libcst.BaseExpression = receiver(node)
        elif isinstance(node, libcst.Attribute) and node.attr.value == "data":
            inner = node.value
        else:
            continue
        end = tree.outer(inner)[1]
        edits.append(Edit(end, tree.span(node)[1], ""))
    for edit in edits:
        yield Candidate("do not leave the graph in backward", (edit,), Fit.NAMED)
    if len(edits) > 1:
        yield Candidate("do not leave the graph in backward", tuple(edits), Fit.NAMED)


def with_graph(scene: Scene) -> Iterator[Candidate]:
    """Without ``no_grad`` around what backward computes."""
    backward, tree = scene.backward, scene.tree
    if scene.fault.code not in ("GL501", "GL502") or backward is None or not scene.own(backward):
        return
    for block in tree.within(backward.node, libcst.With):
        calls = [tree.code(item.item) for item in block.items]
        if len(calls) != 1 or not calls[0].endswith("no_grad()"):
            continue
        if not isinstance(block.body, libcst.IndentedBlock) or not block.body.body:
            continue
        start, indent = tree.line_of(block)
        first, inner = tree.line_of(block.body.body[0])
        end = tree.offset(tree.positions[block.body.body[-1]].end.line + 1, 0)
        body = tree.text[first:end].splitlines(keepends=True)
        if all(line.startswith(inner) or not line.strip() for line in body):
            moved = "".join(indent + line[len(inner) :] if line.strip() else line for line in body)
            yield Candidate(
                "let autograd see what backward computes", (Edit(start, end, moved),), Fit.NAMED
            )


FAMILY = (surrogate, connected, with_graph, once, not_differentiable)
