"""A forward that changes in place what it has saved for backward.

PyTorch saves tensors when forward has returned, so backward reads what they hold then, and no
version check can tell. Forward is run once more with a copy in the place of each tensor, made when
it is handed over: where the gradient is right with the copies, the change is the cause.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch.autograd.function import FunctionCtx

from gradlint.diagnosis.cause import Cause
from gradlint.diagnosis.evidence import Evidence, fit_of
from gradlint.experiments.state.write_places import write_place
from gradlint.experiments.subject import Subject
from gradlint.numerics.map import Map
from gradlint.targets.nodes import method_node
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem


def saved_too_early(
    subject: Subject, function: Map, position: int, evidence: Sequence[Evidence]
) -> Cause | None:
    """The cause that forward changes a saved tensor; None if that does not explain the evidence.

    Args:
        subject: the op where its gradient is wrong.
        function: its map, in its own dtype or in float64.
        position: of the input whose gradient is wrong.
        evidence: of the wrong gradient.
    """
    base: Problem | None = subject.problem
    if [v.dtype for v in function.values] != [v.dtype for v in subject.problem.values()]:
        base = subject.problem.in_float64()
    if base is None or not evidence or not subject.affords(1 + len(evidence)):
        return None
    names = [item.name for item in subject.run.outputs if item.differentiable]
    saving = _Saving()
    problem = base.through(lambda invoke: invoke)
    problem.put(dict(enumerate(function.values)))
    problem.surroundings = saving.around
    found = []
    try:
        for item in evidence:
            if len(item.cotangents) != len(names):
                return None
            found.append(problem.pull(dict(zip(names, item.cotangents, strict=True)))[position])
            if not saving.changed:
                return None
    except OpRaised:
        return None
    finally:
        subject.problem.forward_calls += problem.forward_calls
        subject.problem.backward_calls += problem.backward_calls
    fit = fit_of(evidence, found)
    return None if fit is None else _cause(*saving.changed[0], fit.misfit, str(fit))


class _Saving:
    """Hands copies to ``save_for_backward``.

    Attributes:
        changed: Functions whose forward changed what it had saved, and at which position that was.
    """

    def __init__(self) -> None:
        self.changed: list[tuple[type, int]] = []
        self._saved: list[tuple[type, int, torch.Tensor, torch.Tensor]] = []

    @contextmanager
    def around(self) -> Iterator[None]:
        """While this lasts, forward saves copies."""
        save = FunctionCtx.save_for_backward

        def instead(ctx: Any, *tensors: Any) -> None:
            copies = [t.clone() if _has_memory(t) else t for t in tensors]
            function = getattr(type(ctx), "_forward_cls", type(ctx))
            for place, (own, copy) in enumerate(zip(tensors, copies, strict=True)):
                if own is not copy:
                    self._saved.append((function, place, own, copy))
            save(ctx, *copies)

        kept: Any = FunctionCtx
        kept.save_for_backward = instead
        try:
            yield
        finally:
            kept.save_for_backward = save
            saved, self._saved = self._saved, []
            # Tensors of inference mode count no versions, and a subclass may not be compared.
            with torch.no_grad(), suppress(RuntimeError, TypeError):
                for function, place, own, copy in saved:
                    if own._version and not torch.equal(own, copy):
                        self.changed.append((function, place))


def _has_memory(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout == torch.strided


def _cause(function: type, place: int, misfit: float, fit: str) -> Cause:
    name = _name_of(function, place)
    what = f"`{name}`" if name else f"tensor {place + 1} of those"
    written = write_place(function, "forward", name or None, "")
    line = f" (line {written[0].line})" if written is not None and written[0] is not None else ""
    return Cause(
        "saved-then-changed",
        f"saved, then changed: forward saves {what} for backward and then changes it in place"
        f"{line}: with its values as they were saved, the returned gradient agrees{fit}",
        "change a copy in forward, not in place, or save a copy (`.clone()`)",
        misfit,
    )


def _name_of(function: type, place: int) -> str:
    """The variable that forward hands to ``save_for_backward`` in one place; else ""."""
    held = method_node(function, "forward")
    for node in ast.walk(held[1]) if held is not None else ():
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "save_for_backward"
            and len(node.args) > place
            and isinstance(node.args[place], ast.Name)
        ):
            return str(node.args[place].id)  # type: ignore[attr-defined]
    return ""
