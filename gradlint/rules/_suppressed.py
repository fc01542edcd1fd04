"""Findings that are accepted: declared with the op, in a comment, or in the configuration."""

from __future__ import annotations

import ast
import fnmatch
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradlint.config import Settings
    from gradlint.report import Finding, Location
    from gradlint.rules._rule import Outcome, Rule
    from gradlint.targets import Op


def ignored_rules(op: Op, rules: list[Rule], settings: Settings) -> dict[str, str]:
    """Code → why it is left out, of those ``rules`` that need not run on ``op`` at all."""
    found = {}
    for rule in rules:
        reason = _fitting(op.ignores, rule.code)
        if reason is not None:
            found[rule.code] = f"ignored by the op: {reason}" if reason else "ignored by the op"
            continue
        pattern = _pattern(op, rule.code, settings)
        if pattern is not None:
            found[rule.code] = f"ignored in pyproject.toml for {pattern}"
    return found


def without_suppressed(outcome: Outcome) -> Outcome:
    """``outcome`` without the findings that a comment on their line, or on the ``def`` around it,
    accepts: ``# gradlint: ignore[GL602] reason``."""
    kept, told = [], []
    for finding in outcome.findings:
        reason = _comment(finding)
        if reason is None:
            kept.append(finding)
        else:
            told.append(f"accepted in {finding.location}" + (f": {reason}" if reason else ""))
    if not told:
        return outcome
    outcome.findings = kept
    outcome.note = "; ".join(part for part in (outcome.note, *told) if part)
    if outcome.verdict == "fail" and all(finding.severity == "info" for finding in kept):
        outcome.verdict = "skipped"
    return outcome


def _fitting(ignores: dict[str, str], code: str) -> str | None:
    """The reason under ``code`` or the longest prefix of it."""
    fitting = [key for key in ignores if code.startswith(key)]
    return ignores[max(fitting, key=len)] if fitting else None


def _pattern(op: Op, code: str, settings: Settings) -> str | None:
    names = {op.target, op.target.partition(":")[0], op.name}
    for pattern, codes in settings.per_target_ignores:
        if any(code.startswith(known) for known in codes) and any(
            fnmatch.fnmatchcase(name, pattern) for name in names
        ):
            return pattern
    return None


def _comment(finding: Finding) -> str | None:
    from gradlint.targets._intent import ignores_in
    from gradlint.targets._source_file import read_source

    location = finding.location
    source = read_source(os.path.abspath(location.file)) if location is not None else None
    if location is None or source is None or source.tree is None:
        return None
    for first, last in _scopes(source.tree, location):
        reason = _fitting(ignores_in(source, first, last), finding.code)
        if reason is not None:
            return reason
    return None


def _scopes(tree: ast.Module, location: Location) -> list[tuple[int, int]]:
    """Lines whose comments speak for ``location``: its own, and the headers of the functions and
    classes that hold it."""
    found = [(location.line, location.end_line or location.line)]
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and (
            node.lineno <= location.line <= (node.end_lineno or node.lineno)
        ):
            found.append((node.lineno, max(node.lineno, node.body[0].lineno - 1)))
    return found
