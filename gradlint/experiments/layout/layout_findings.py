"""Findings about a memory layout that changes the result."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gradlint.base.text import error_line, error_text
from gradlint.experiments.baseline_comparison import Difference, make_baseline
from gradlint.experiments.gradient_place import gradient_place
from gradlint.experiments.layout.cotangent_layouts import AlteredCall, in_layout, pull_from_graph
from gradlint.experiments.raised_errors import (
    defining_file,
    raised_evidence,
    raised_place,
    user_frames,
)
from gradlint.experiments.returned_gradients import backward_place
from gradlint.experiments.subject import Subject
from gradlint.experiments.torch_owned_backward import TORCH_OWNED_NOTE, is_torch_owned_backward
from gradlint.model.report import Finding
from gradlint.model.rule import Rule
from gradlint.targets import source
from gradlint.trace.layouts import LAYOUT_WORDS
from gradlint.trace.op_io import OpRaised

#: Words in the texts of exceptions which say that a layout is not supported.
_LAYOUT_WORDS_IN_ERRORS = (
    "contiguous",
    "stride",
    "layout",
    "memory format",
    "aligned",
    "alignment",
    "offset",
)


def layout_words(layouts: Sequence[str]) -> str:
    """The layouts in words: "transposed in memory, or channels_last"."""
    words = [LAYOUT_WORDS[name] for name in layouts]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])}, or {words[-1]}"


def cotangent_findings(
    subject: Subject, rule: Rule, found: Sequence[AlteredCall], help: str, also: str = ""
) -> list[Finding]:
    """Findings on layouts of grad_output: one of each kind of exception, one an input.

    Args:
        found: calls with layouts that change something.
        also: words appended to the description of the layouts.
    """
    findings = []
    errors: dict[str, list[AlteredCall]] = {}
    changed: dict[int, list[tuple[str, Difference]]] = {}
    for seen in found:
        if seen.error is not None:
            errors.setdefault(type(seen.error.error).__name__, []).append(seen)
        for difference in seen.differences:
            changed.setdefault(difference.position, []).append((seen.layout, difference))
    for group in errors.values():
        where = f"where grad_output is {layout_words([seen.layout for seen in group])}{also}"
        findings.append(_raised_finding(subject, rule, group[0], where, help))
    for position, items in changed.items():
        layouts = [layout for layout, _ in items]
        where = f"where grad_output is {layout_words(layouts)}{also}"
        cause = _read_without_strides(subject, position, layouts)
        findings.append(_gradient_finding(subject, rule, position, items[0][1], where, help, cause))
    return findings


def input_findings(
    subject: Subject, rule: Rule, seen: AlteredCall, names: Sequence[str], help: str
) -> list[Finding]:
    """Findings on ``seen``, a call with the tensors ``names`` in another layout."""
    who = ", ".join(f"`{name}`" for name in names)
    where = f"where {who} {'is' if len(names) == 1 else 'are'} {layout_words([seen.layout])}"
    if seen.error is not None:
        return [_raised_finding(subject, rule, seen, where, help, names)]
    forward = source.method(subject.op, "forward")
    findings = [
        subject.finding(
            rule,
            f"forward returns a different `{item.name}` {where}",
            cause="layout-ignored",
            output=item.name,
            input=names[0] if len(names) == 1 else None,
            index=item.index,
            place=forward if forward[0] is not None else None,
            evidence=item.evidence(),
            help=help,
        )
        for item in seen.outputs[:1]
    ]
    if findings:
        return findings  # the gradient of a different function differs too
    return [
        _gradient_finding(subject, rule, item.position, item, where, help, None)
        for item in seen.differences
    ]


def _fault(item: Difference) -> str:
    if item.kind == "missing":
        return f"`{item.name}` gets {'no' if item.got == 'None' else 'a different'} gradient"
    return f"gradient for `{item.name}` is {'not finite' if item.kind == 'NaN' else 'wrong'}"


def _gradient_finding(
    subject: Subject,
    rule: Rule,
    position: int,
    item: Difference,
    where: str,
    help: str,
    cause: str | None,
) -> Finding:
    torch_owned = item.kind in ("value", "NaN") and is_torch_owned_backward(subject)
    return subject.finding(
        rule,
        f"{_fault(item)} {where}",
        grounds=subject.grounds(torch_owned=torch_owned),
        cause="layout-ignored",
        cause_text=TORCH_OWNED_NOTE if torch_owned else cause or "",
        input=item.name,
        index=item.index,
        place=gradient_place(subject, subject.problem.inputs[position]),
        evidence=item.evidence(),
        help=help,
    )


def _raised_finding(
    subject: Subject,
    rule: Rule,
    seen: AlteredCall,
    where: str,
    help: str,
    names: Sequence[str] = (),
) -> Finding:
    assert seen.error is not None
    error, phase = seen.error.error, seen.error.phase
    prefer = defining_file(subject)
    nodes = subject.run.nodes
    refused = phase == "forward" and refuses_layout(error, prefer)
    place = raised_place(error, prefer)
    torch_owned = phase == "backward" and place is None and is_torch_owned_backward(subject)
    behind = backward_place(nodes[-1]) if nodes and phase == "backward" else None
    verb = "refuses" if refused else "raises"
    what = ", ".join(f"`{name}`" for name in names) + f" {LAYOUT_WORDS[seen.layout]}"
    return subject.finding(
        rule,
        f"forward refuses {what}" if refused else f"{phase} {verb} {type(error).__name__} {where}",
        grounds=subject.grounds(silent=False, torch_owned=torch_owned, refused=refused),
        cause="layout-refused",
        cause_text=f"{error_line(error)} ({TORCH_OWNED_NOTE})"
        if torch_owned
        else error_line(error),
        input=names[0] if len(names) == 1 else None,
        place=place or behind,
        evidence=raised_evidence(error, prefer),
        help=help,
    )


def refuses_layout(error: BaseException, prefer: str | None) -> bool:
    """Whether ``error`` says that a layout is not supported, in its text or by the line that
    raised it (``assert x.is_contiguous()``)."""
    if isinstance(error, NotImplementedError):
        return True
    frames = user_frames(error, prefer)
    line = (frames[-1].line or "") if frames and isinstance(error, AssertionError) else ""
    text = f"{error_text(error)} {line}".lower()
    return any(word in text for word in _LAYOUT_WORDS_IN_ERRORS)


def _read_without_strides(subject: Subject, position: int, layouts: Sequence[str]) -> str | None:
    """The cause in words where the gradient is that of grad_output's memory read as contiguous."""
    baseline = subject.once(make_baseline)
    layout = next((name for name in layouts if name in ("transposed", "channels_last")), None)
    if baseline is None or layout is None:
        return None

    def in_a_row(value: torch.Tensor) -> torch.Tensor:
        steps = torch.empty(value.shape, device="meta").stride()
        return torch.as_strided(value, value.shape, steps, value.storage_offset()).clone()

    vs = in_layout(baseline.cotangents, layout) or {}
    try:
        got = pull_from_graph(subject, vs, fresh=True)[position]
        rows = {name: in_a_row(value) for name, value in vs.items()}
        expected = pull_from_graph(subject, rows, fresh=True)[position]
    except OpRaised:
        return None
    if got is None or expected is None or got.shape != expected.shape:
        return None
    scale = float(expected.detach().abs().max())
    allowed = baseline.allowed(position)
    gap = (got - expected).detach().abs()
    if allowed is None or not scale or not bool((gap <= allowed).all()):
        return None
    return "strides ignored: the gradient belongs to grad_output's memory read as if contiguous"
