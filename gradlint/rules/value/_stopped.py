"""Gradients that are not the derivative because forward itself stops some of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from gradlint.report import Finding
    from gradlint.rules._subject import Subject

#: Lines that are named, at most.
SHOWN = 3


def name_stops(subject: Subject, findings: Sequence[Finding]) -> None:
    """Warn where a gradient of PyTorch's own backward is the derivative once ``detach`` and the
    like let gradients through: a stop is written there on purpose, or is the bug.

    Args:
        subject: the op.
        findings: wrong gradients; they are changed.
    """
    from gradlint.numerics._judge import AGREES, ROUNDED, judge
    from gradlint.rules._raised import line_place
    from gradlint.rules._whose import is_torchs_backward
    from gradlint.trace._problem import OpRaised
    from gradlint.trace._stops import GradientStops

    wrong = {item.input: item for item in findings if item.severity == "error"}
    if not wrong or not is_torchs_backward(subject):
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
        if not stops.lines:
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
            f"detached: forward stops gradients at {where}; let through there, the gradient agrees"
        )
        finding.location, finding.excerpt, finding.related = places[-1]
        finding.help = (
            f"if the stop is meant, declare what `{finding.input}` gets (`surrogate`) or ignore "
            "this; else take the detach, .data or no_grad out"
        )
