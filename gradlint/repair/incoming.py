"""Candidates for what backward does with the gradients that come in: it leaves them out, or does
not expect them to be missing."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst

from gradlint.repair.candidate import Candidate, Edit, Fit
from gradlint.repair.expressions import as_left, as_operand, method_call, receiver
from gradlint.repair.scene import Scene

#: Calls that bound or round an incoming gradient: backward is not linear then.
_NONLINEAR = ("clamp", "clip", "clamp_", "clip_", "round", "sign", "relu", "tanh", "nan_to_num")

#: Attributes of a tensor that say of which kind it is.
_KINDS = ("device", "dtype", "shape", "layout", "ndim")


def left_out(scene: Scene) -> Iterator[Candidate]:
    """``grad_output *`` in front of a gradient that ignores it."""
    fault, tree = scene.fault, scene.tree
    ignores = "ignores-grad-output" in (fault.cause, fault.cause_text.partition(":")[0])
    if not ignores or not scene.incoming:
        return
    grad = scene.incoming[0]
    together: list[Edit] = []
    for name in (fault.input, *fault.others):
        for node in scene.returned_for(name):
            if _uses_value(scene, node, grad) or tree.code(node) == "None":
                continue
            bare = node
            while (call := method_call(bare, "clone")) is not None and not call.args:
                bare = receiver(call)
            together.append(tree.replaced(node, f"{grad} * {as_operand(tree, bare)}"))
    for edits in dict.fromkeys([tuple(together), tuple(together[:1])]):
        if edits:
            yield Candidate(f"multiply by `{grad}`", edits, Fit.NAMED)


def _uses_value(scene: Scene, node: libcst.BaseExpression, name: str) -> bool:
    """Whether ``node`` uses the numbers of ``name``, and not only what kind of tensor it is."""
    for one in scene.tree.within(node, libcst.Name):
        above = scene.tree.parent(one)
        kind = isinstance(above, libcst.Attribute) and above.value is one
        if one.value == name and not (kind and above.attr.value in _KINDS):  # type: ignore[union-attr]
            return True
    return False


def where_not_used(scene: Scene) -> Iterator[Candidate]:
    """``grad_output`` in the one branch that leaves it out (GL707)."""
    fault, tree = scene.fault, scene.tree
    if not scene.incoming or "ignores-grad-output" not in fault.cause_text:
        return
    grad = scene.incoming[0]
    for source in scene.sources(fault.input):
        for choice in tree.within(source, libcst.IfExp):
            for good, bad in ((choice.orelse, choice.body), (choice.body, choice.orelse)):
                if grad in tree.code(good) and grad not in tree.code(bad):
                    yield Candidate(
                        "use the formula of the other branch always",
                        (tree.replaced(choice, tree.code(good)),),
                        Fit.NAMED,
                    )
                    yield Candidate(
                        f"multiply by `{grad}` in this branch too",
                        (tree.replaced(bad, f"{grad} * {as_operand(tree, bad)}"),),
                        Fit.LIKELY,
                    )


def linear(scene: Scene) -> Iterator[Candidate]:
    """Without the call that bounds or rounds the gradient (cause ``not-linear``)."""
    fault, tree = scene.fault, scene.tree
    if fault.cause not in ("not-linear", "nonlinear") and "not linear" not in fault.cause_text:
        return
    for source in scene.sources(fault.input):
        for call in tree.within(source, libcst.Call):
            if method_call(call, *_NONLINEAR) is None:
                continue
            inner = receiver(call)
            whole = isinstance(tree.parent(call), (libcst.Return, libcst.Assign))
            text = tree.inner(inner) if whole else tree.code(inner)
            assert isinstance(call.func, libcst.Attribute)
            yield Candidate(
                f"leave out {call.func.attr.value}(): a gradient is linear in grad_output",
                (tree.replaced(call, text),),
                Fit.NAMED,
            )


def undefined(scene: Scene) -> Iterator[Candidate]:
    """Zeros from PyTorch in place of ``None`` for outputs that are not used (GL405)."""
    if scene.fault.cause != "undefined-grad-output" and scene.fault.code != "GL405":
        return
    for owner in scene.lineage[:1]:
        for call in scene.tree.within(owner, libcst.Call):
            if method_call(call, "set_materialize_grads") is None:
                continue
            statement = scene.tree.nearest(call, libcst.SimpleStatementLine)
            if statement is not None and len(statement.body) == 1:
                yield Candidate(
                    "let PyTorch pass zeros for outputs that are not used",
                    (scene.tree.without(statement),),
                    Fit.NAMED,
                )
    yield from _guards(scene)


def _guards(scene: Scene) -> Iterator[Candidate]:
    """Zeros made in backward, for those gradients whose shape it knows from another."""
    backward, tree = scene.backward, scene.tree
    first = scene.first_statement(backward)
    if backward is None or first is None or not scene.own(backward):
        return
    wanted = re.search(r"where `output(?:\[(\d+)\])?` is unused", scene.fault.message)
    place = int(wanted[1] or 0) if wanted else 0
    if place >= len(backward.parameters):
        return
    name = backward.parameters[place]
    shapes = [text for text in _outputs(scene) if place < len(text)]
    for outputs in shapes:
        found = scene.in_hand.get(outputs[place])
        if found is None:
            # An output that keeps no record of its shape: one whose axes are those of another.
            continue
        after = scene.tree.nearest(scene.unpacking, libcst.SimpleStatementLine) or first
        start = tree.offset(tree.positions[after].end.line + 1, 0)
        indent = tree.line_of(after)[1]
        lines = [f"if {name} is None:", f"    {name} = torch.zeros_like({found})"]
        text = "".join(f"{indent}{line}{tree.newline}" for line in lines)
        yield Candidate(
            f"take zeros for `{name}` where its output is not used",
            (Edit(start, start, text),),
            Fit.LIKELY,
        )
    yield from _term_left_out(scene, name)


def _outputs(scene: Scene) -> Iterator[list[str]]:
    for statement in scene.returns_of(scene.forward):
        yield [scene.tree.code(one) for one in scene.elements(statement)]


def _term_left_out(scene: Scene, name: str) -> Iterator[Candidate]:
    """A sum without the terms of a gradient that is missing."""
    tree = scene.tree
    for node in tree.within(
        scene.backward.node if scene.backward else None, libcst.BinaryOperation
    ):
        if not isinstance(node.operator, libcst.Add):
            continue
        for side, other in ((node.right, node.left), (node.left, node.right)):
            if re.search(rf"\b{name}\b", tree.code(side)) and not re.search(
                rf"\b{name}\b", tree.code(other)
            ):
                text = f"({tree.code(side)} if {name} is not None else 0)"
                yield Candidate(
                    f"leave the term of `{name}` out where its output is not used",
                    (tree.replaced(side, text),),
                    Fit.LIKELY,
                )


def unlike_ones(scene: Scene) -> Iterator[Candidate]:
    """A division by grad_output, or by what is made of it, and the product that undoes it left out
    (GL405: not finite where it is zero)."""
    fault, tree = scene.fault, scene.tree
    if fault.cause != "zero-grad-output":
        return
    for source in scene.sources(fault.input):
        for node in tree.within(source, libcst.BinaryOperation):
            if isinstance(node.operator, libcst.Multiply):
                code = tree.code(node.right)
                pattern = re.compile(rf"\s*/\s*{re.escape(code)}(?![\w.\[(])")
                left = as_left(tree, node.left)
                if pattern.search(left):
                    yield Candidate(
                        f"leave {code} out, by which it is divided and multiplied",
                        (tree.replaced(node, pattern.sub("", left, count=1)),),
                        Fit.NAMED,
                    )


FAMILY = (left_out, where_not_used, linear, undefined, unlike_ones)
