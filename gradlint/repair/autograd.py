"""The last candidate: a backward that runs forward once more under autograd, as checkpointing does.

It is right whatever the fault in backward is, as far as forward's own operations are, and it costs
another forward. So it comes after all others, and the reader is told.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

import libcst

from gradlint.repair.candidate import Candidate, Edit, Fit
from gradlint.repair.scene import Scene

#: Findings that a backward by autograd can mend: those of its gradients.
_CODES = ("GL1", "GL2", "GL401", "GL402", "GL405", "GL5", "GL60", "GL7")

#: What forward must not do if it is to run again under autograd.
_UNFIT = re.compile(
    r"\.data\b|\.detach\(|\.numpy\(|no_grad|\bout=|\w_\(|\bwith\b|\bglobal\b|"
    r"\.item\(|\brand|\bdropout\b|requires_grad"
)

#: Characters of what is returned in one line (heuristic: the usual 100 less an indentation).
_LONGEST = 80

SLOWER = (
    "this backward runs forward once more under autograd, as checkpointing does: it is correct "
    "and slower than a formula of its own"
)


def by_autograd(scene: Scene) -> Iterator[Candidate]:
    """A backward made from forward."""
    forward, backward, tree = scene.forward, scene.backward, scene.tree
    if not scene.fault.code.startswith(_CODES) or forward is None or backward is None:
        return
    tensors = [one.name for one in scene.fault.known if one.shape is not None]
    plain = [name for name in forward.parameters if name not in tensors]
    if not _alone(scene) or not tensors or not set(tensors) <= set(forward.parameters):
        return
    formula, edits = _formula(scene), _kept(scene, tensors, plain)
    if formula is None or edits is None:
        return
    first, last = backward.statements[0], backward.statements[-1]
    start, indent = tree.line_of(first)
    text = textwrap.indent("\n".join(_backward(scene, formula, tensors, plain)), indent)
    yield Candidate(
        "let autograd differentiate forward",
        (*edits, Edit(start, tree.span(last)[1], text.replace("\n", tree.newline))),
        Fit.REWRITE,
        note=SLOWER,
    )


def _alone(scene: Scene) -> bool:
    """Whether the class holds a forward with a context and a backward of one gradient."""
    forward, backward = scene.forward, scene.backward
    if forward is None or backward is None or scene.saving is None:
        return False
    written = scene.own(forward) and scene.own(backward) and scene.saving.node is forward.node
    usual = bool(forward.ctx) and not forward.starred and len(backward.parameters) == 1
    return written and usual and bool(forward.statements) and bool(backward.statements)


def _formula(scene: Scene) -> list[str] | None:
    """The statements of forward without those for the context; ``output`` is what it returns."""
    forward, tree = scene.forward, scene.tree
    assert forward is not None
    if _UNFIT.search(tree.code(forward.node.body)):
        return None
    lines: list[str] = []
    for statement in forward.statements:
        code = tree.code(statement)
        parts = statement.body if isinstance(statement, libcst.SimpleStatementLine) else ()
        only = parts[0] if len(parts) == 1 else None
        documents = isinstance(only, libcst.Expr) and isinstance(only.value, libcst.SimpleString)
        if documents or re.match(rf"{forward.ctx}\.", code):
            continue
        if only is None or re.search(rf"\b{forward.ctx}\b", code):
            return None
        if isinstance(only, libcst.Return):
            if only.value is None or isinstance(only.value, libcst.Tuple):
                return None
            return [*lines, f"output = {tree.code(only.value)}"]
        lines.append(textwrap.dedent(code))
    return None


def _kept(scene: Scene, tensors: list[str], plain: list[str]) -> list[Edit] | None:
    """Forward keeps all of its arguments, and nothing else."""
    forward, tree = scene.forward, scene.tree
    assert forward is not None
    lines = [f"{forward.ctx}.save_for_backward({', '.join(tensors)})"]
    lines += [f"{forward.ctx}.{name} = {name}" for name in plain]
    edits: list[Edit] = []
    for statement in forward.statements:
        if re.match(rf"{forward.ctx}\.\w+(\s*=|\()", tree.code(statement)):
            if f"{forward.ctx}.mark_" in tree.code(statement) or ".set_materialize" in tree.code(
                statement
            ):
                return None
            edits.append(tree.without(statement))
    first = scene.first_statement(forward)
    if first is None:
        return None
    edits.append(tree.line_before(first, *lines))
    return edits


def _backward(scene: Scene, formula: list[str], tensors: list[str], plain: list[str]) -> list[str]:
    forward, backward = scene.forward, scene.backward
    assert forward is not None
    assert backward is not None
    ctx, grad = backward.ctx, backward.parameters[0]
    names = ", ".join(tensors) if len(tensors) > 1 else f"({tensors[0]},)"
    lines = [f"{names} = {ctx}.saved_tensors"]
    lines += [f"{name} = {ctx}.{name}" for name in plain]
    lines.append("with torch.enable_grad():")
    inner = [f"{name} = {name}.view_as({name})" for name in tensors] + formula
    lines += textwrap.indent("\n".join(inner), "    ").split("\n")
    lines += [
        f"inputs = [one for one in {_tuple(tensors)} if one.requires_grad]",
        "grads = iter(",
        "    torch.autograd.grad(",
        f"        output, inputs, {grad}, create_graph=torch.is_grad_enabled(), allow_unused=True",
        "    )",
        ")",
        *_returned(forward.parameters, tensors),
    ]
    return lines


def _returned(parameters: list[str], tensors: list[str]) -> list[str]:
    """The statement that returns a gradient for each argument, in lines that are not too long."""
    each = [
        f"next(grads) if {name}.requires_grad else None" if name in tensors else "None"
        for name in parameters
    ]
    if sum(map(len, each)) <= _LONGEST:
        return [f"return {', '.join(each)}"]
    return ["return (", *(f"    {one}," for one in each), ")"]


def _tuple(names: list[str]) -> str:
    return f"({', '.join(names)})" if len(names) > 1 else f"({names[0]},)"


FAMILY = (by_autograd,)
