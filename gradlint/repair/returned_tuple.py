"""Candidates for what backward returns as a whole: too few gradients, too many, in another order,
for what is no tensor, or as what is none."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst

from gradlint.repair.candidate import Candidate, Edit, Fit
from gradlint.repair.expressions import method_call, receiver
from gradlint.repair.scene import Scene

#: Calls at the end of an expression by which a tensor becomes something else.
_LEAVING = ("numpy", "item", "tolist", "cpu", "detach")


def arity(scene: Scene) -> Iterator[Candidate]:
    """As many gradients as forward has arguments (GL101)."""
    if scene.fault.code != "GL101" or scene.forward is None or scene.forward.starred:
        return
    count = len(scene.forward.parameters)
    for statement in scene.returns:
        elements = scene.elements(statement)
        if elements and len(elements) < count:
            yield from _filled(scene, statement, elements, count)
        if len(elements) > count:
            yield from _shortened(scene, statement, elements, count)


def _filled(
    scene: Scene, statement: libcst.Return, elements: list[libcst.BaseExpression], count: int
) -> Iterator[Candidate]:
    """``None`` for arguments that have no gradient, at the places where it could be missing."""
    assert scene.forward is not None
    names, tree = scene.forward.parameters, scene.tree
    codes = [tree.code(one) for one in elements]
    plain = [one.name for one in scene.fault.known if one.shape is None]
    missing = count - len(codes)
    constant = [place for place, name in enumerate(names) if name in plain]
    layouts = [list(range(len(codes), count))]
    if len(constant) == missing and constant not in layouts:
        layouts.insert(0, constant)
    if missing == 1:
        layouts += [[place] for place in range(count) if [place] not in layouts]
    for rank, places in enumerate(layouts):
        left = iter(codes)
        made = ["None" if place in places else next(left) for place in range(count)]
        whom = " and ".join(f"`{names[place]}`" for place in places)
        assert statement.value is not None
        yield Candidate(
            f"return `None` for {whom}",
            (tree.replaced(statement.value, ", ".join(made)),),
            Fit.NAMED if rank == 0 and set(places) <= set(constant) else Fit.LIKELY,
        )


def _shortened(
    scene: Scene, statement: libcst.Return, elements: list[libcst.BaseExpression], count: int
) -> Iterator[Candidate]:
    """Without the surplus: ``None`` first, then what comes last."""
    tree = scene.tree
    codes = [tree.code(one) for one in elements]
    surplus = len(codes) - count
    nothing = [place for place, code in enumerate(codes) if code == "None"]
    choices = [nothing[-surplus:]] if len(nothing) >= surplus else []
    choices.append(list(range(count, len(codes))))
    if surplus == 1:
        choices += [[place] for place in range(len(codes))]
    for rank, places in enumerate(choices):
        kept = [code for place, code in enumerate(codes) if place not in places]
        text = ", ".join(kept) if len(kept) != 1 else kept[0]
        assert statement.value is not None
        yield Candidate(
            f"return {count} gradient{'s' * (count != 1)}, one for each argument of forward",
            (tree.replaced(statement.value, text),),
            Fit.NAMED if rank == 0 else Fit.LIKELY,
        )


def nothing_for_numbers(scene: Scene) -> Iterator[Candidate]:
    """``None`` for what is no tensor (GL102)."""
    if scene.fault.code == "GL102" and scene.node is not None:
        yield Candidate(
            f"return `None` for `{scene.fault.input}`, which is not a tensor",
            (scene.tree.replaced(scene.node, "None"),),
            Fit.NAMED,
        )


def tensors(scene: Scene) -> Iterator[Candidate]:
    """A tensor in place of an array or a number (GL104)."""
    node = scene.node
    if scene.fault.code != "GL104" or node is None:
        return
    for one in scene.sources(scene.fault.input):
        inner = one
        while (call := method_call(inner, *_LEAVING)) is not None and not call.args:
            inner = receiver(call)
        if inner is not one:
            code = scene.tree.code(inner)
            bare = scene.tree.inner(inner)
            whole = one is node and isinstance(scene.tree.parent(one), libcst.Return)
            yield Candidate(
                f"return the tensor itself for `{scene.fault.input}`",
                (scene.tree.replaced(one, bare if whole or inner.lpar else code),),
                Fit.NAMED,
            )
    if "ndarray" in scene.fault.message and "torch" in scene.tree.text:
        yield Candidate(
            f"make a tensor of the array that is returned for `{scene.fault.input}`",
            (scene.tree.replaced(node, f"torch.from_numpy({scene.tree.inner(node)})"),),
            Fit.LIKELY,
        )


def order(scene: Scene) -> Iterator[Candidate]:
    """Two gradients exchanged (cause ``swapped``), or all brought into another order."""
    fault, forward = scene.fault, scene.forward
    if fault.cause != "swapped" or forward is None or fault.input not in forward.parameters:
        return
    named = re.findall(r"`(\w+)`", fault.cause_text)
    place = forward.parameters.index(fault.input)
    partners = [n for n in named if n in forward.parameters and n != fault.input]
    rest = [n for n in forward.parameters if n not in (*partners, fault.input)]
    for name in (*partners, *rest):
        other = forward.parameters.index(name)
        edits: list[Edit] = []
        for statement in scene.returns:
            elements = scene.elements(statement)
            if max(place, other) < len(elements):
                a, b = elements[place], elements[other]
                edits += [
                    scene.tree.replaced(a, scene.tree.code(b)),
                    scene.tree.replaced(b, scene.tree.code(a)),
                ]
        if edits:
            yield Candidate(
                f"exchange the gradients of `{fault.input}` and `{name}`",
                tuple(edits),
                Fit.NAMED if name in partners else Fit.GUESS,
            )


def of_a_term(scene: Scene) -> Iterator[Candidate]:
    """The incoming gradient, summed, for an argument that forward adds or subtracts (GL103)."""
    fault, tree = scene.fault, scene.tree
    node = scene.node
    if fault.code != "GL103" or node is None or len(scene.incoming) != 1:
        return
    signs = _added(scene, fault.input)
    shapes = [one.shape for one in fault.known if one.shape is not None]
    own = next((one.shape for one in fault.known if one.name == fault.input), None)
    if not signs or own is None:
        return
    longest = max(len(shape) for shape in shapes)
    for sign in dict.fromkeys(signs):
        for extra in range(longest - len(own) + 1):
            axes = "" if not extra else f".sum({0 if extra == 1 else tuple(range(extra))})"
            yield Candidate(
                f"return the gradient of `{fault.input}`, which forward "
                f"{'subtracts' if sign else 'adds'}",
                (tree.replaced(node, f"{sign}{scene.incoming[0]}{axes}"),),
                Fit.NAMED if extra == longest - len(own) else Fit.LIKELY,
            )


def _added(scene: Scene, name: str) -> list[str]:
    """The signs with which forward returns ``name`` as a term of a sum."""
    found = []
    for statement in scene.returns_of(scene.forward):
        left = scene.elements(statement)[:1]
        while left:
            node = left.pop()
            if not isinstance(node, libcst.BinaryOperation):
                continue
            if isinstance(node.operator, (libcst.Add, libcst.Subtract)):
                left.append(node.left)
                minus = isinstance(node.operator, libcst.Subtract)
                if scene.tree.code(node.right) == name:
                    found.append("-" if minus else "")
                if scene.tree.code(node.left) == name:
                    found.append("")
    return found


FAMILY = (arity, nothing_for_numbers, tensors, order, of_a_term)
