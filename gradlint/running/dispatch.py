"""The operators of a run, done elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait

from gradlint.base.errors import GradlintError
from gradlint.model.settings import Settings
from gradlint.running._task import TargetTask
from gradlint.running.cluster import ClusterLost, opened
from gradlint.running.interruption import interruptible
from gradlint.running.items import Item, Result, decoded, encoded, predicted_cost
from gradlint.running.news import Running
from gradlint.running.runners import RunnerLost, check_item

#: Seconds between two looks for a signal, and two ticks.
_LOOK_S = 1.0


def on_cluster(
    tasks: Sequence[TargetTask],
    settings: Settings,
    on_tick: Callable[[Sequence[Running]], None],
) -> None:
    """Check the operators of ``tasks`` on the cluster that the settings name, long ones first, and
    give each task its result as it comes.

    Raises:
        GradlintError: the cluster can't be used, or was lost; what was done before stays.
        Enough: a task says that the run ends here.
        KeyboardInterrupt: what had not begun was dropped.
    """
    if settings.sanitizer is not None:
        raise GradlintError(
            "compute-sanitizer is not run on a cluster",
            place="--cluster",
            hint="leave out one of --cluster and --sanitizer",
        )
    assert settings.cluster is not None
    gpu = any(device != "cpu" for device in settings.devices)
    with interruptible():
        executor = opened(settings.cluster, os.getcwd(), gpu=gpu)
    finished = False
    try:
        _dispatch(tasks, settings, executor, on_tick)
        finished = True
    finally:
        executor.shutdown(cancel_futures=not finished)


def _dispatch(
    tasks: Sequence[TargetTask],
    settings: Settings,
    executor: Executor,
    on_tick: Callable[[Sequence[Running]], None],
) -> None:
    costs = {task: predicted_cost(task.ref, settings) for task in tasks}
    waiting: dict[Future[bytes], TargetTask] = {}
    for task in sorted(tasks, key=lambda task: -costs[task]):
        item = Item(task.ref, settings, costs[task])
        waiting[executor.submit(check_item, encoded(item), os.getcwd(), settings.jobs)] = task
    while waiting:
        with interruptible():
            done, _ = wait(waiting, _LOOK_S, FIRST_COMPLETED)
        on_tick([])
        lost = None
        for future in done:
            task = waiting.pop(future)
            try:
                task.adopt(decoded(future.result(), Result))
            except RunnerLost as error:
                task.adopt(Result("", internal=[f"{task.ref.target}: {error}\n{error}"]))
            except ClusterLost as error:
                lost = error
                task.report.notes.append(f"not done: {error}")
        if lost is not None and not waiting:
            raise GradlintError(
                str(lost),
                place="--cluster",
                hint="what was done before is reported; start the cluster and run it again",
            )
