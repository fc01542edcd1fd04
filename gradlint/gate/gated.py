"""A run as a gate: which operators are chosen, when it ends, what is accepted, what is missing."""

from __future__ import annotations

from collections.abc import Sequence

from gradlint.gate import baseline as _baseline
from gradlint.model.report import Report, TargetReport
from gradlint.model.settings import Settings
from gradlint.running.news import Progress, Tick
from gradlint.running.run import Run, execute


def gated(
    targets: Sequence[str],
    settings: Settings,
    *,
    on_progress: Progress | None = None,
    on_tick: Tick | None = None,
    use_baseline: bool = True,
) -> Run:
    """Check ``targets``, and hold the report against what the settings ask of a gate.

    Raises:
        GradlintError: what the gate needs can't be read; nothing was run.
    """
    wanted = settings.baseline if use_baseline else None
    baseline = _baseline.read(wanted) if wanted is not None else None
    failed = 0

    def judge(report: TargetReport) -> bool:
        nonlocal failed
        if baseline is not None:
            baseline.accept(report)
        failed += Report(fail_on=settings.fail_on).fails(report)
        return settings.max_failures is not None and failed >= settings.max_failures

    run = execute(targets, settings, on_progress=on_progress, on_tick=on_tick, judge=judge)
    if baseline is not None:
        run.report.baseline = baseline.use(run.report, settings)
    return run
