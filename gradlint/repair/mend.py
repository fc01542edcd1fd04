"""Fixes for all that a run found: what ``gradlint fix`` and ``gradlint check --suggest`` offer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gradlint.base.errors import GradlintError
from gradlint.model.op import OpRef
from gradlint.model.report import Report, TargetReport
from gradlint.model.settings import Settings
from gradlint.repair.search import Mended, mended, to_mend
from gradlint.running.interruption import interruptible
from gradlint.running.trial import examined
from gradlint.targets.resolve import EVERY, resolve

#: Called before the search for the changes of a target begins.
Begin = Callable[[str], None]


def fixes(
    report: Report,
    settings: Settings,
    codes: Sequence[str] | None = None,
    *,
    begin: Begin | None = None,
) -> list[Mended]:
    """Search for a fix of every target of ``report`` that needs one, and attach what is found to
    its findings.

    A fix is verified by all rules that the settings do not ignore, also where the run selected
    some: such a target is checked once more, as it is.

    Args:
        report: of a run; findings get their ``fix``.
        settings: of that run.
        codes: prefixes of the codes of the findings to mend; None for all errors and warnings.
        begin: see :data:`Begin`.

    Returns:
        What came of each of these targets.

    Raises:
        KeyboardInterrupt: Ctrl-C; what was found before is attached.
    """
    found = []
    every = replace(settings, select=None)
    for number, target in enumerate(report.targets):
        if not to_mend(target, codes):
            continue
        if begin is not None:
            begin(target.target)
        with interruptible():
            made = _mended(target, every, codes, again=settings.select is not None)
        found.append(made)
        for finding in target.findings if made.fix is not None else ():
            if finding.severity != "info" or finding in made.findings:
                finding.fix = made.fix
        if made.fix is not None:
            report.targets[number] = target
    return found


def _mended(
    target: TargetReport, settings: Settings, codes: Sequence[str] | None, *, again: bool
) -> Mended:
    ref = _ref(target, settings)
    if ref is None:
        return Mended(target.target, to_mend(target, codes), why="it can't be named by itself")
    base = examined([ref], settings)[0] if again else target
    made = mended(ref, base, settings, codes)
    made.findings = to_mend(target, codes)
    return made


def _ref(target: TargetReport, settings: Settings) -> OpRef | None:
    try:
        refs = resolve(target.target, settings)
    except GradlintError:
        return None
    return refs[0] if len(refs) == 1 and refs[0].attribute != EVERY else None
