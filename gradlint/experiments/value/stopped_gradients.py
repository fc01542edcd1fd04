"""Gradients that are not the derivative because forward itself stops some of them."""

from __future__ import annotations

import itertools
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

import gradlint
from gradlint.experiments.contract.inner_constants import leaf_of
from gradlint.experiments.raised_errors import line_place
from gradlint.experiments.returned_gradients import returned_gradients
from gradlint.experiments.subject import Subject
from gradlint.experiments.torch_owned_backward import is_torch_owned_backward
from gradlint.experiments.value.held_stops import held_on_purpose
from gradlint.model.report import Finding
from gradlint.numerics.judge import judge
from gradlint.numerics.verdict import AGREES, ROUNDED
from gradlint.trace.op_io import OpRaised

_DETACHES = (torch.Tensor.detach, torch.detach, torch.Tensor.data.__get__)  # type: ignore[attr-defined]

#: What ``torch.no_grad`` and its kin call.
_SWITCH = "_set_grad_enabled"

_TORCH, _GRADLINT = (os.path.dirname(module.__file__ or "") for module in (torch, gradlint))

#: Lines that are named, at most.
SHOWN = 3


def name_gradient_stops(subject: Subject, findings: Sequence[Finding]) -> None:
    """Warn where a gradient of PyTorch's own backward is the derivative once ``detach`` and the
    like let gradients through: a stop is written there on purpose, or is the bug. Modules may keep
    what is held constant whoever wrote the backward.

    Args:
        subject: the op.
        findings: wrong gradients; they are changed.
    """
    # In low precision, what is held may look like stairs.
    wrong = {
        item.input: item
        for item in findings
        if item.severity == "error"
        or (item.cause == "straight-through" and not item.grounds.explained)
    }
    owned = is_torch_owned_backward(subject)
    if not wrong or not (owned or subject.op.module or subject.op.function):
        return
    wrong = _without_held(subject, wrong)
    wrong = {name: item for name, item in wrong.items() if item.severity == "error"}
    if not owned:
        return
    function = subject.first_order_map

    def let_through(
        values: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]
    ) -> Sequence[torch.Tensor | None]:
        with GradientStops(release=True):
            return function.pull_at(values, cotangents)

    names = [item.name for item in subject.problem.inputs]
    positions = [position for position, name in enumerate(names) if name in wrong]
    stops = GradientStops()
    try:
        with stops:
            subject.problem.linearize()
        if not stops.lines or not wrong:
            return
        released = replace(function, pull_at=let_through, twin=None)
        judged = judge(released, seed=subject.seed, inputs=positions).inputs
    except OpRaised:  # what is written to in place may not be let through
        return
    places = [line_place(line, "gradients stop here") for line in stops.lines[:SHOWN]]
    where = ", ".join(f"{at.file}:{at.line}" for at, _, _ in places if at is not None)
    for item in judged:
        if item.verdict not in (AGREES, ROUNDED):
            continue
        finding = wrong[names[item.index]]
        finding.severity, finding.cause = "warning", "detached"
        finding.cause_text = (
            f"detached: forward stops gradients at {where}; without these stops, the gradient "
            "agrees"
        )
        finding.location, finding.excerpt, finding.related = places[-1]
        finding.help = (
            f"if the stop is intended, declare what `{finding.input}` gets (`surrogate`) or ignore "
            "this; otherwise remove the detach, .data or no_grad"
        )


def _without_held(subject: Subject, wrong: dict[str | None, Finding]) -> dict[str | None, Finding]:
    """``wrong`` without the gradients that hold values constant on purpose, which are now
    information."""
    names = [item.name for item in subject.problem.inputs]
    held = held_on_purpose(subject, [k for k, name in enumerate(names) if name in wrong])
    for position in held:
        finding = wrong.pop(names[position])
        finding.severity, finding.cause = "info", "detached"
        finding.message = f"the gradient for `{finding.input}` holds some values constant"
        finding.cause_text = (
            "detached: what forward computes under no_grad and keeps for later calls, or what "
            "PyTorch itself detaches, is held constant; so held, the gradient agrees"
        )
        finding.help = "nothing, if this is meant, as in a power iteration or a moving average"
    return wrong


def stops_for_constant(subject: Subject, position: int) -> bool:
    """Whether forward stops the gradient of the input at ``position``, and the Function behind has
    none for it either: in two places it is taken for a constant. One forward and one backward call
    where no gradient came."""
    gradients = subject.run.gradients
    if gradients is None or gradients[position] is not None or subject.op.function is not None:
        return False
    asked = any(one.needed and leaf_of(one) == position for one in returned_gradients(subject))
    if asked or not subject.run.nodes:
        return False  # a Function was asked for it, and forgot it
    stops = GradientStops(release=True)
    try:
        with stops:
            found = subject.problem.pull(subject.run.cotangents)
    except OpRaised:
        return False
    return bool(stops.lines) and found[position] is None


class GradientStops(TorchFunctionMode):
    """Notes every stop of a gradient that the user's code makes.

    Args:
        release: let gradients through instead.

    Attributes:
        lines: the lines of user's code that stop gradients, each once.
    """

    def __init__(self, *, release: bool = False) -> None:
        super().__init__()
        self.lines: list[traceback.FrameSummary] = []
        self._release = release

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        detaches = any(func == known for known in _DETACHES)
        switches = getattr(func, "__name__", "") == _SWITCH and not args[0]
        frame = _caller() if detaches or switches else None
        if frame is not None:
            line = _summary(frame)
            if line not in self.lines:
                self.lines.append(line)
            if self._release:
                return args[0] if detaches else None
        return func(*args, **(kwargs or {}))


def _caller() -> FrameType | None:
    """The nearest frame outside of torch; None where that is gradlint's own."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_TORCH + os.sep):
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename.startswith(_GRADLINT + os.sep):
        return None
    return frame


def _summary(frame: FrameType) -> traceback.FrameSummary:
    """The call that ``frame`` is at, with its columns (Python 3.11 and later)."""
    code = frame.f_code
    place: dict[str, Any] = {}
    if sys.version_info >= (3, 11):
        found = next(itertools.islice(code.co_positions(), frame.f_lasti // 2, None))
        place = dict(zip(("end_lineno", "colno", "end_colno"), found[1:], strict=True))
    return traceback.FrameSummary(code.co_filename, frame.f_lineno, code.co_name, **place)
