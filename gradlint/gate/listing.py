"""``gradlint list``: what a check would run, with which inputs, and why something is left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradlint.model.report import Finding, Report, TargetReport, jsonable
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import rule_names, select_rules
from gradlint.running.run import LeaveOut, Run, execute

#: Version of what :func:`entries` gives; fields are only added within one.
SCHEMA_VERSION = 1


def listed(targets: Sequence[str], settings: Settings, leave_out: LeaveOut | None = None) -> Run:
    """Load ``targets`` and find their inputs in isolated workers; no rule runs.

    In the report of the run, a target has its samples, a check that is skipped for every rule that
    would be left out, and a finding where it can't be loaded or has no inputs.
    """
    return execute(targets, settings, listing=True, leave_out=leave_out)


def exit_code(run: Run) -> int:
    """0 where every target would run, 1 where one can't, 5 where none would; else the run's own."""
    if run.exit_code in (2, 3, 130):
        return run.exit_code
    if any(problem(target) is not None for target in run.report.targets):
        return 1
    return 0 if any(target.samples for target in run.report.targets) else 5


def problem(target: TargetReport) -> Finding | None:
    """Why ``target`` can't run: what was found while it was loaded, or its inputs were sought."""
    return target.findings[0] if target.findings else None


def rules_of(target: TargetReport, settings: Settings) -> list[str]:
    """The codes of the rules that would run on ``target``."""
    if not target.samples:
        return []
    out = {check.code for check in target.checks}
    return [r.code for r in select_rules(settings) if r.has_probe and r.code not in out]


def entries(report: Report, settings: Settings) -> dict[str, Any]:
    """The list as one object for JSON."""
    names = rule_names()
    targets = []
    for target in report.targets:
        found = problem(target)
        targets.append(
            {
                "target": target.target,
                "kind": target.kind,
                "location": jsonable(target.location),
                "runs": bool(target.samples),
                "samples": jsonable(target.samples),
                "rules": rules_of(target, settings),
                "left_out": [
                    {"code": check.code, "name": names[check.code], "reason": check.note}
                    for check in target.checks
                ],
                "notes": list(target.notes),
                "problem": None
                if found is None
                else {key: getattr(found, key) for key in ("code", "name", "message", "help")},
            }
        )
    return {
        "schema_version": SCHEMA_VERSION,
        "gradlint": report.gradlint,
        "seed": report.seed,
        "shard": report.shard,
        "targets": targets,
        "left_out": dict(report.left_out),
        "skipped": dict(report.skipped),
    }
