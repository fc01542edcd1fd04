"""Checks of single operators apart from a run: of a file as it is, or with a change tried on it."""

from __future__ import annotations

from collections.abc import Sequence

from gradlint.model.op import OpRef
from gradlint.model.report import TargetReport
from gradlint.model.settings import Settings
from gradlint.running import _memory
from gradlint.running._schedule import schedule
from gradlint.running._task import TargetTask, Trouble


def examined(refs: Sequence[OpRef], settings: Settings) -> list[TargetReport]:
    """Check ``refs`` in isolated workers, under the limits of any check, ``settings.jobs`` at a
    time.

    Returns:
        Their reports, in their order. What is wrong with a target, also by a mistake of the user's
        or of gradlint's own, is in its report.

    Raises:
        KeyboardInterrupt: Ctrl-C; every worker was ended.
        ServerLost: no worker can be started.
    """
    jobs = max(1, min(settings.jobs, len(refs)))
    memory = _memory.allowance(settings.memory_mb, jobs, settings.devices)
    trouble = Trouble()
    tasks = [TargetTask(ref, settings, trouble, memory_mb=memory) for ref in refs]
    schedule(tasks, jobs)
    return [task.report for task in tasks]
