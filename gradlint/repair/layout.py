"""Candidates for operators that take the memory of a tensor for laid out otherwise than it is."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst

from gradlint.repair.candidate import Candidate, Edit, Fit
from gradlint.repair.expressions import as_operand, method_call
from gradlint.repair.scene import Method, Scene

_CODES = ("GL701", "GL702", "GL703", "GL704")


def reshape(scene: Scene) -> Iterator[Candidate]:
    """``reshape``, which copies where it must, in place of ``view``."""
    if scene.fault.code not in (*_CODES, "GL706", "GL707", "GL004"):
        return
    tree = scene.tree
    edits = []
    for method in _methods(scene):
        for call in tree.within(method.node, libcst.Call):
            if method_call(call, "view") is None or not isinstance(call.func, libcst.Attribute):
                continue
            edits.append(tree.replaced(call.func.attr, "reshape"))
    for edit in edits:
        yield Candidate("use reshape(), which copies where it must", (edit,), Fit.NAMED)
    if len(edits) > 1:
        yield Candidate("use reshape(), which copies where it must", tuple(edits), Fit.LIKELY)


def _methods(scene: Scene) -> list[Method]:
    return [
        method
        for method in (scene.backward, scene.forward)
        if method is not None and scene.own(method)
    ]


def contiguous_gradient(scene: Scene) -> Iterator[Candidate]:
    """A contiguous ``grad_output`` from the start of backward."""
    backward, tree = scene.backward, scene.tree
    codes = (*_CODES, "GL706", "GL707")
    if scene.fault.code not in codes or backward is None or not scene.own(backward):
        return
    first = scene.first_statement(backward)
    for name in backward.parameters if first is not None else ():
        for call, fit in (("contiguous()", Fit.NAMED), ("clone()", Fit.LIKELY)):
            if scene.fault.code == "GL702" and call == "clone()":
                call = "clone(memory_format=torch.contiguous_format)"
            assert first is not None
            yield Candidate(
                f"begin backward with {name}.{call}",
                (tree.line_before(first, f"{name} = {name}.{call}"),),
                fit if scene.fault.code in ("GL701", "GL702") else Fit.GUESS,
            )


def contiguous_arguments(scene: Scene) -> Iterator[Candidate]:
    """Contiguous tensors for what reads their memory."""
    if scene.fault.code not in _CODES:
        return
    tree = scene.tree
    for method in _methods(scene):
        tensors = {*method.parameters, *scene.unpacked}
        for call in tree.within(method.node, libcst.Call):
            if not isinstance(call.func, (libcst.Name, libcst.Attribute)):
                continue
            if re.match(r"(torch\.|\w+\.(save_for_backward|mark_))", tree.code(call.func)):
                continue
            for arg in call.args:
                if isinstance(arg.value, libcst.Name) and arg.value.value in tensors:
                    end = tree.outer(arg.value)[1]
                    title = f"pass {arg.value.value}.contiguous() to {tree.code(call.func)}()"
                    yield Candidate(title, (Edit(end, end, ".contiguous()"),), Fit.NAMED)
        for call in tree.within(method.node, libcst.Call):
            found = method_call(call, "contiguous")
            if found is None or call.args or scene.fault.code != "GL704":
                continue
            start, end = tree.outer(call)
            text = tree.text[start:end].removesuffix(".contiguous()")
            yield Candidate(
                f"pass a copy of {text}, which begins where its memory does",
                (Edit(start, end, f"{text}.clone(memory_format=torch.contiguous_format)"),),
                Fit.LIKELY,
            )


def all_contiguous(scene: Scene) -> Iterator[Candidate]:
    """A condition on the layout of one tensor, on that of all."""
    tree = scene.tree
    if scene.fault.code not in _CODES:
        return
    for method in _methods(scene):
        for call in tree.within(method.node, libcst.Call):
            if method_call(call, "is_contiguous") is None or call.args:
                continue
            others = [
                one
                for one in (scene.forward.parameters if scene.forward else ())
                if f"{one}.is_contiguous()" not in tree.code(method.node)
                and any(k.name == one and k.shape is not None for k in scene.fault.known)
            ]
            for other in others:
                end = tree.outer(call)[1]
                yield Candidate(
                    f"ask whether `{other}` is contiguous, too",
                    (Edit(end, end, f" and {other}.is_contiguous()"),),
                    Fit.LIKELY,
                )


def stride_tests(scene: Scene) -> Iterator[Candidate]:
    """``is_contiguous`` in place of a test of single strides."""
    tree = scene.tree
    if scene.fault.code not in ("GL701", "GL702", "GL703"):
        return
    for method in _methods(scene):
        for branch in tree.within(method.node, libcst.If):
            found = re.search(r"\b(\w+)\.stride\(", tree.code(branch.test))
            if found:
                yield Candidate(
                    f"ask whether `{found[1]}` is contiguous",
                    (tree.replaced(branch.test, f"not {found[1]}.is_contiguous()"),),
                    Fit.NAMED,
                )


def dense_results(scene: Scene) -> Iterator[Candidate]:
    """A contiguous tensor for the result, whatever the layout of the one it is made like."""
    tree = scene.tree
    if scene.fault.code not in _CODES:
        return
    for method in _methods(scene):
        for call in tree.within(method.node, libcst.Call):
            name = tree.code(call.func)
            like = name in ("torch.empty_like", "torch.zeros_like", "torch.ones_like")
            if like and "memory_format" not in tree.code(call):
                end = tree.outer(call)[1] - 1
                yield Candidate(
                    f"make the result of {name}() contiguous",
                    (Edit(end, end, ", memory_format=torch.contiguous_format"),),
                    Fit.NAMED,
                )
            if name == "torch.empty_strided" and len(call.args) > 1:
                first, rest = call.args[0], call.args[2:]
                texts = [tree.code(first.value)]
                texts += [tree.code(one).rstrip(", ") for one in rest]
                yield Candidate(
                    "make the result contiguous",
                    (tree.replaced(call, f"torch.empty({', '.join(texts)})"),),
                    Fit.LIKELY,
                )


def own_offset(scene: Scene) -> Iterator[Candidate]:
    """The offset of the tensor's own memory in ``as_strided``."""
    tree = scene.tree
    if scene.fault.code not in _CODES:
        return
    for method in _methods(scene):
        for call in tree.within(method.node, libcst.Call):
            if tree.code(call.func) == "torch.as_strided" and len(call.args) == 3:
                end = tree.outer(call)[1] - 1
                base = as_operand(tree, call.args[0].value)
                yield Candidate(
                    "begin where the tensor does",
                    (Edit(end, end, f", {base}.storage_offset()"),),
                    Fit.LIKELY,
                )


def aligned(scene: Scene) -> Iterator[Candidate]:
    """A copy where memory is not aligned."""
    tree, backward = scene.tree, scene.backward
    if scene.fault.code != "GL704" or backward is None or not scene.own(backward):
        return
    for branch in tree.within(backward.node, libcst.If):
        found = re.search(r"\b(\w+)\.data_ptr\(\)\s*%", tree.code(branch.test))
        raised = list(tree.within(branch.body, libcst.Raise))
        if found and len(raised) == 1:
            yield Candidate(
                f"copy `{found[1]}` where its memory is not aligned",
                (tree.replaced(raised[0], f"{found[1]} = {found[1]}.clone()"),),
                Fit.NAMED,
            )


FAMILY = (
    reshape,
    contiguous_gradient,
    contiguous_arguments,
    all_contiguous,
    stride_tests,
    dense_results,
    own_offset,
    aligned,
)
