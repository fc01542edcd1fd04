"""A run as a gate: which operators are chosen, when it ends, what is accepted, what is missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradlint.cache.verdicts import Verdicts
from gradlint.gate import baseline as _baseline
from gradlint.gate.choice import Choice, remember_failed
from gradlint.gate.coverage import required, unchecked
from gradlint.gate.failed_checks import remember_checks
from gradlint.model.report import Report, TargetReport
from gradlint.model.settings import Settings
from gradlint.running.news import Progress, Tick
from gradlint.running.run import Run, execute
from gradlint.running.spool import Spool

#: Nothing is left out.
EVERYTHING = Choice()


def _unheard(_: str) -> None:
    """Nobody is told."""


def verdicts_of(settings: Settings, warn: Callable[[str], None]) -> Verdicts | None:
    """The cache of verdicts that the settings name; None for none.

    Raises:
        GradlintError: it can't be used at all.
    """
    if settings.cache is None:
        return None
    if settings.sanitizer is not None:
        warn("--cache: a check under a sanitizer is always run, so no verdict is read or kept")
        return None
    return Verdicts(settings)


def gated(
    targets: Sequence[str],
    settings: Settings,
    *,
    on_progress: Progress | None = None,
    on_tick: Tick | None = None,
    use_baseline: bool = True,
    choice: Choice = EVERYTHING,
    warn: Callable[[str], None] = _unheard,
    spool: Spool | None = None,
) -> Run:
    """Check ``targets``, and hold the report against what the settings ask of a gate.

    Args:
        targets: what the user typed.
        settings: of the run.
        on_progress, on_tick: see ``gradlint.running.news``.
        use_baseline: whether to look at the baseline that the settings name.
        choice: which of the operators to check.
        warn: called with a text for what is amiss and stops nothing.
        spool: what keeps the results; None for memory.

    Raises:
        GradlintError: what the gate needs can't be read; nothing was run.
    """
    wanted = settings.baseline if use_baseline else None
    baseline = _baseline.read(wanted) if wanted is not None else None
    operators = required(settings.require_coverage)
    leave_out = choice.leave_out(settings, warn)
    recall = verdicts_of(settings, warn)
    failed = 0

    def judge(report: TargetReport) -> bool:
        nonlocal failed
        if baseline is not None:
            baseline.accept(report)
        failed += Report(fail_on=settings.fail_on).fails(report)
        return settings.max_failures is not None and failed >= settings.max_failures

    run = execute(
        targets,
        settings,
        on_progress=on_progress,
        on_tick=on_tick,
        leave_out=leave_out,
        judge=judge,
        recall=recall,
        spool=spool,
    )
    report = run.report
    report.shard = choice.shard
    report.cache = recall.use if recall is not None else None
    if baseline is not None:
        report.baseline = baseline.use(report, settings)
    if not (report.interrupted or report.stopped):
        report.unchecked = unchecked(operators, run)
    remember_failed(report)
    remember_checks(report)
    return run
