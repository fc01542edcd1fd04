"""The runs of ``gradlint sweep``: every operator of a target, each in an isolated worker."""

from __future__ import annotations

import time

import gradlint
from gradlint.model.op import OpRef
from gradlint.model.settings import Settings
from gradlint.model.sweep import SweepReport, SweepTarget
from gradlint.running import server
from gradlint.running.call import WorkerFailed, call_on_target
from gradlint.running.job import ExpandWork, SweepWork
from gradlint.running.run import environment
from gradlint.targets.resolve import EVERY, resolve


def sweep_target(
    target: str, settings: Settings, *, steps: int | None = None, sample: str | None = None
) -> SweepReport:
    """Sweep every operator that ``target`` names, each in an isolated worker.

    Raises:
        GradlintError: the target, its inputs or its specification can't be used.
        WorkerFailed: gradlint itself failed.
    """
    started = time.monotonic()
    server.start(private=settings.untrusted)
    refs: list[OpRef] = []
    for ref in resolve(target, settings):
        if ref.attribute == EVERY:
            refs += call_on_target(ExpandWork(ref, settings))
        else:
            refs.append(ref)
    swept: list[SweepTarget] = []
    for ref in refs:
        swept += _in_worker(ref, settings, steps, sample)
    return sweep_report(swept, settings, started)


def _in_worker(
    ref: OpRef, settings: Settings, steps: int | None, sample: str | None
) -> list[SweepTarget]:
    try:
        found: list[SweepTarget] = call_on_target(SweepWork(ref, settings, steps, sample))
    except WorkerFailed as failed:
        finding = failed.finding
        if finding is None:
            raise
        told = [f"{finding.code} {finding.message}", finding.help]
        if finding.severity == "info":
            return [SweepTarget(ref.target, ref.kind, notes=[line for line in told if line])]
        if finding.location is not None:
            told.insert(1, f"at {finding.location}")
        error = "\n".join(line for line in told if line)
        return [SweepTarget(ref.target, ref.kind, error=error)]
    return found


def sweep_report(targets: list[SweepTarget], settings: Settings, started: float) -> SweepReport:
    """The report of ``targets``, swept since ``started``."""
    took = time.monotonic() - started
    return SweepReport(targets, settings.seed, environment(), gradlint.__version__, took)
