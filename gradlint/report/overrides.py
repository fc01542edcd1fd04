"""The audit of a class that overrides torch's functions, as text for terminals and programs."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from rich.text import Text

from gradlint.report import wording
from gradlint.report.text import Page

#: Output formats of an audit.
OVERRIDES_FORMATS = ("full", "concise", "json")

#: How many names a list shows without ``-v``.
_SHOWN = 12


def render_overrides(
    audit: dict[str, Any],
    format: str = "full",
    *,
    width: int = 80,
    color: bool = False,
    ascii: bool = False,
    verbose: int = 0,
) -> str:
    """``audit`` as text that ends in a line end.

    Args:
        audit: what ``gradlint.overrides.audit`` returned.
        format: one of :data:`OVERRIDES_FORMATS`.
        verbose: 1 lists all functions.
    """
    if format == "json":
        return json.dumps(audit, indent=2, allow_nan=False) + "\n"
    page = Page(width, ascii=ascii, verbose=verbose)
    if format == "concise":
        for found in audit["findings"]:
            page.line(page.clean(f"{audit['target']}: {found['severity']} {_told(found)}"))
        return page.text(color=color)
    _full(page, audit)
    return page.text(color=color)


def failing(audit: dict[str, Any]) -> bool:
    """Whether a finding is an error or a warning."""
    return any(found["severity"] != "info" for found in audit["findings"])


def _full(page: Page, audit: dict[str, Any]) -> None:
    verdict = "fail" if failing(audit) else "pass"
    line = Text().append(f"{verdict:<5}", wording.STYLES.get(verdict, "bold"))
    page.line(line.append("  ").append(page.clean(audit["target"]), "bold"))
    page.row("torch has", f"{audit['overridable']} overridable functions", column=_COLUMN)
    page.row("handles", _listed(audit["handled"], page.verbose), column=_COLUMN)
    for label, key in (("passes on", "passed_on"), ("refuses", "refused")):
        names = audit[key]
        text = _listed(names, 1) if page.verbose else _counted(names)
        page.row(label, text, column=_COLUMN)
    tried = audit["skipped"] or (
        f"{audit['tried']} functions on {audit['samples']} random instances (seed "
        f"{audit['seed']}), against torch on plain tensors"
    )
    page.row("called", tried, column=_COLUMN)
    for severity in ("error", "warning", "info"):
        found = [item for item in audit["findings"] if item["severity"] == severity]
        if found:
            page.blank()
            page.line(severity, wording.STYLES.get(severity, "bold"))
        for message, names in _grouped(found).items():
            who = _listed(names, page.verbose) if names[1:] else names[0]
            page.paragraph(f"{who}: {message}", indent=2, hanging=2)
    page.blank()
    count = len(audit["findings"])
    page.paragraph(f"{count} finding{'s' if count != 1 else ''}.")


_COLUMN = 10


def _told(found: dict[str, Any]) -> str:
    return f"{found['function']}: {found['message']} [{found['kind']}]"


def _grouped(findings: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Message → functions that it applies to."""
    groups: dict[str, list[str]] = {}
    for found in findings:
        groups.setdefault(f"{found['message']} [{found['kind']}]", []).append(found["function"])
    return groups


def _counted(names: list[str]) -> str:
    """How many names there are in each namespace."""
    spaces = Counter(_space(name) for name in names)
    parts = [f"{count} of {space}" for space, count in spaces.most_common()]
    return f"{len(names)}: {', '.join(parts)}" if names else "none"


def _space(name: str) -> str:
    known = ("torch.Tensor", "torch.nn.functional", "torch.nn.init", "torch.linalg", "torch.fft")
    return next((space for space in (*known, "torch.special") if name.startswith(space)), "torch")


def _listed(names: list[str], verbose: int) -> str:
    shown = names if verbose else names[:_SHOWN]
    more = len(names) - len(shown)
    text = ", ".join(shown) + (f" and {more} more (-v lists them)" if more else "")
    return f"{len(names)}: {text}" if names else "none"
