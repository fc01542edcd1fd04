"""Candidates for gradients of another shape than their input: a sum that is missing, or over other
axes than it should be."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst

from gradlint.repair.candidate import Candidate, Edit, Fit
from gradlint.repair.expressions import as_operand, method_call
from gradlint.repair.scene import Scene

#: Reductions that take axes.
_REDUCTIONS = ("sum", "mean", "amax", "amin", "prod", "logsumexp", "norm", "var", "std")

#: Causes and codes of a gradient that is summed too little, or over other axes.
_CAUSES = ("missing-reduction", "wrong-axis", "one-slice", "broadcast")
_CODES = ("GL201", "GL202", "GL706", "GL708")

#: Axes that are tried in place of another (heuristic: an operator of more axes has longer sums).
_MOST_AXIS = 3


def missing(scene: Scene) -> Iterator[Candidate]:
    """``sum_to_size``, or a sum over the axes that the input does not have."""
    fault, tree = scene.fault, scene.tree
    if fault.cause not in _CAUSES and fault.code not in _CODES[:2]:
        return
    for node in scene.sources(fault.input):
        if tree.code(node) == "None":
            continue
        operand = as_operand(tree, node)
        whole = not any(method_call(node, *_REDUCTIONS) is not None for node in (node,))
        for text, edits in _axes_named(scene) if whole else ():
            yield Candidate(
                f"sum the gradient of `{fault.input}` over {text}",
                (
                    tree.replaced(
                        node, f"{operand}.sum({text.removeprefix('axes ').removeprefix('axis ')})"
                    ),
                    *edits,
                ),
                Fit.NAMED,
            )
        shape = _shape_of(scene)
        if shape is not None and whole:
            yield Candidate(
                f"sum the gradient of `{fault.input}` to the shape of `{fault.input}`",
                (tree.replaced(node, f"{operand}.sum_to_size({shape[0]})"), *shape[1]),
                Fit.LIKELY,
            )


def _axes_named(scene: Scene) -> Iterator[tuple[str, tuple[Edit, ...]]]:
    """The axes that the diagnosis names, or those that an output of its shape has more."""
    fault = scene.fault
    named = re.findall(
        r"[Ss]um over (axis \d+|axes \[[\d, ]+\])", f"{fault.help} {fault.cause_text}"
    )
    for words in dict.fromkeys(named):
        yield words.replace("[", "(").replace("]", ")"), ()
    shapes = {one.name: one.shape for one in fault.known if one.shape is not None}
    own = shapes.get(fault.input)
    got = re.search(r"has shape \[([\d, ]*)\]", fault.message)
    if own is None:
        return
    have = tuple(int(n) for n in got[1].split(",") if n.strip()) if got else None
    for shape in ([have] if have else []) + [s for s in shapes.values() if s is not None]:
        extra = len(shape) - len(own)
        if extra > 0 and (shape[extra:] == own or have is None):
            axes = tuple(range(extra))
            yield (f"axis {axes[0]}" if extra == 1 else f"axes {axes}"), ()


def _shape_of(scene: Scene) -> tuple[str, tuple[Edit, ...]] | None:
    """The shape of the input as backward can write it."""
    name = scene.fault.input
    for text in (f"{name}.shape", f"{name}.size()"):
        if text in scene.in_hand:
            return scene.in_hand[text], ()
    found = scene.reach(name)
    return (f"{found[0]}.shape", found[1]) if found is not None else None


def other_axes(scene: Scene) -> Iterator[Candidate]:
    """Another axis for a reduction that is there."""
    fault, tree = scene.fault, scene.tree
    if fault.cause not in (*_CAUSES, "rank", "odd-size") and fault.code not in _CODES:
        return
    named = re.search(r"[Ss]um over axis (\d+)", f"{fault.help} {fault.cause_text}")
    for source in scene.sources(fault.input):
        for call in tree.within(source, libcst.Call):
            if method_call(call, *_REDUCTIONS) is None:
                continue
            for arg in call.args:
                if arg.keyword is not None and arg.keyword.value not in ("dim", "axis"):
                    continue
                code = tree.code(arg.value)
                if not re.fullmatch(r"-?\d+", code):
                    continue
                axis = int(code)
                choices = [-1] if fault.cause == "rank" else []
                choices += [int(named[1])] if named else []
                choices += [0, -1, 1, -2, 2][: _MOST_AXIS + 1]
                for other in dict.fromkeys(one for one in choices if one != axis):
                    yield Candidate(
                        f"reduce over axis {other} in place of {axis}",
                        (tree.replaced(arg.value, str(other)),),
                        Fit.NAMED if other in choices[:1] else Fit.LIKELY,
                    )


def squeezed(scene: Scene) -> Iterator[Candidate]:
    """An axis for ``squeeze()``, which drops every axis of size 1."""
    if scene.fault.code not in ("GL201", "GL202", "GL706"):
        return
    tree, backward = scene.tree, scene.backward
    places: list[libcst.CSTNode] = [*scene.sources(scene.fault.input)]
    if not places and backward is not None and scene.own(backward):
        places = [backward.node]
    for source in places:
        for call in tree.within(source, libcst.Call):
            if method_call(call, "squeeze") is None or call.args:
                continue
            end = tree.outer(call)[1]
            for axis in (-1, 0, 1):
                yield Candidate(
                    f"squeeze axis {axis} alone: squeeze() drops every axis of size 1",
                    (Edit(end - 2, end, f"({axis})"),),
                    Fit.LIKELY,
                )


def one_slice(scene: Scene) -> Iterator[Candidate]:
    """A sum over the first axis in place of its first, or last, slice."""
    if scene.fault.cause not in _CAUSES:
        return
    tree = scene.tree
    for source in scene.sources(scene.fault.input):
        for node in tree.within(source, libcst.Subscript):
            index = ", ".join(tree.code(one) for one in node.slice)
            if re.fullmatch(r"-?\d+", index):
                yield Candidate(
                    f"sum the gradient of `{scene.fault.input}` over axis 0 in place of its "
                    f"slice {index}",
                    (tree.replaced(node, f"{tree.code(node.value)}.sum(0)"),),
                    Fit.NAMED,
                )


FAMILY = (missing, one_slice, other_axes, squeezed)
