"""``gradlint.Checker``: many operators, checked as they come, for pipelines."""

from __future__ import annotations

import concurrent.futures
import hashlib
import inspect
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any

import gradlint
from gradlint.base.errors import GradlintError
from gradlint.base.files import write_whole
from gradlint.base.scratch import scratch_folder
from gradlint.base.text import first_line
from gradlint.model.op import OpRef
from gradlint.model.report import RunError, TargetReport, jsonable
from gradlint.model.resolve import resolve_settings
from gradlint.model.settings import Settings
from gradlint.report.display import Report
from gradlint.rules.catalogue import rule_names
from gradlint.running.cluster import opened
from gradlint.running.items import Item, Result, decoded, encoded, predicted_cost
from gradlint.running.run import environment
from gradlint.running.runners import RunnerLost, check_item
from gradlint.targets.resolve import EVERY, resolve


class Checker:
    """Checks operators that a program hands in one by one, each in isolated processes.

    ::

        with gradlint.Checker(jobs=8) as checker:
            futures = {checker.submit(text, "randn(3, 4)"): text for text in candidates}
            for future in checker.as_completed(futures):
                brief = future.result().brief
                print(brief.ok, brief.code, brief.cause, brief.resolution)

    The process of the program imports neither the operators nor torch for it.

    Args:
        jobs: operators at a time here; None for one on each core. With a cluster, its workers
            decide.
        cluster: the address of a Dask scheduler, such as "tcp://10.0.0.1:8786", or "local:N" for N
            processes here; None for this machine without Dask.
        executor: another ``concurrent.futures.Executor`` whose workers have gradlint, for clusters
            that are not Dask's.
        timeout: seconds that loading, finding inputs, or one rule may take.
        memory_mb: MiB that one operator may allocate.
        settings: those of the command line, by name: ``select``, ``dtypes``, ``untrusted``, …

    Raises:
        GradlintError: a setting, or the cluster, can't be used.
    """

    def __init__(
        self,
        *,
        jobs: int | None = None,
        cluster: str | None = None,
        executor: Executor | None = None,
        timeout: float | None = None,
        memory_mb: int | None = None,
        **settings: Any,
    ) -> None:
        flags = {"jobs": jobs, "timeout": timeout, "memory_mb": memory_mb, **settings}
        # A cache is of runs, and what is handed in as text is another operator each time.
        self._settings = replace(resolve_settings(flags, rules=rule_names()), cache=None)
        self._folder = os.getcwd()
        self._own = executor is None
        gpu = any(device != "cpu" for device in self._settings.devices)
        if executor is not None:
            self._executor: Executor = executor
        elif cluster is not None:
            self._executor = opened(cluster, self._folder, gpu=gpu)
        else:
            self._executor = ThreadPoolExecutor(self._settings.jobs, "gradlint")

    def __enter__(self) -> Checker:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wait for what was submitted; after an exception, drop what has not begun."""
        self.close(cancel=error is not None)

    def close(self, *, cancel: bool = False) -> None:
        """Take nothing more, and wait for what was submitted.

        Args:
            cancel: drop what has not begun.
        """
        if self._own:
            self._executor.shutdown(wait=True, cancel_futures=cancel)

    def submit(
        self,
        op: Any,
        inputs: str | None = None,
        *,
        time_limit: float | None = None,
        memory_mb: int | None = None,
    ) -> Future[Report]:
        """Check ``op``.

        Args:
            op: source text (of more than one line), the text of a target such as
                ``path/file.py:Name``, or a class, function or module class that an import finds
                under its name. All operators of a text or file are checked.
            inputs: as ``--inputs``: an expression such as ``"randn(3, 4)"``, or
                ``path/file.py:function``; None for those that the operator names, or inference.
            time_limit: seconds that each operator may take altogether. What is known then is
                reported, and does not pass.
            memory_mb: MiB that each operator may allocate.

        Returns:
            The future report. Its ``brief`` has ``ok``, ``code``, ``cause`` and ``resolution``.

        Raises:
            GradlintError: there is no such target, or no import finds the object.
        """
        changes: dict[str, Any] = {}
        if inputs is not None:
            changes["inputs"] = inputs
        if memory_mb is not None:
            changes["memory_mb"] = memory_mb
        settings = replace(self._settings, **changes)
        files: dict[str, str] = {}
        if isinstance(op, str) and "\n" in op:
            refs, files = _of_text(op, settings)
        else:
            refs = resolve(op if isinstance(op, str) else _name_of(op), settings)
        submitted = _Submitted(self, settings, files, time_limit)
        submitted.add(refs)
        return submitted.future

    def as_completed(
        self, futures: Iterable[Future[Report]], timeout: float | None = None
    ) -> Iterator[Future[Report]]:
        """``futures`` in the order in which they are done.

        Raises:
            TimeoutError: not all were done in ``timeout`` seconds.
        """
        return concurrent.futures.as_completed(futures, timeout)

    def start(self, item: Item) -> Future[bytes]:
        """Hand one item to the executor."""
        return self._executor.submit(check_item, encoded(item), self._folder, self._settings.jobs)


class _Submitted:
    """What was submitted at once: operators whose results become one report."""

    def __init__(
        self, checker: Checker, settings: Settings, files: dict[str, str], limit: float | None
    ) -> None:
        self.future: Future[Report] = Future()
        self.future.set_running_or_notify_cancel()
        self._checker = checker
        self._settings = settings
        self._files = files
        self._limit = limit
        self._results: dict[int, tuple[OpRef, Result]] = {}
        self._left = 0
        self._count = 0
        self._lock = threading.Lock()

    def add(self, refs: Sequence[OpRef]) -> None:
        """Check ``refs`` too."""
        with self._lock:
            numbers = range(self._count, self._count + len(refs))
            self._count += len(refs)
            self._left += len(refs)
        if not refs and not self._left:
            self._finish()
        for number, ref in zip(numbers, refs, strict=True):
            item = Item(
                ref,
                self._settings,
                predicted_cost(ref, self._settings),
                self._limit,
                self._files,
            )
            future = self._checker.start(item)
            future.add_done_callback(partial(self._done, number, ref))

    def _done(self, number: int, ref: OpRef, done: Future[bytes]) -> None:
        try:
            result = decoded(done.result(), Result)
        except concurrent.futures.CancelledError:
            self._fail(concurrent.futures.CancelledError())
            return
        except RunnerLost as error:
            result = Result("", internal=[f"{ref.target}: {error}\n"])
        except Exception as error:  # of an executor that is not gradlint's
            self._fail(error)
            return
        if result.refs:
            self.add(result.refs)
        with self._lock:
            self._results[number] = ref, result
            self._left -= 1
            finished = self._left == 0
        if finished:
            self._finish()

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            if not self.future.done():
                self.future.set_exception(error)

    def _finish(self) -> None:
        report = Report(
            seed=self._settings.seed,
            environment=environment(),
            gradlint=gradlint.__version__,
            fail_on=self._settings.fail_on,
            settings=jsonable(self._settings),
        )
        for _, (ref, result) in sorted(self._results.items(), key=lambda pair: pair[0]):
            report.errors += [RunError("usage", mistake.message) for mistake in result.usage]
            report.errors += [RunError("internal", first_line(text)) for text in result.internal]
            made = result.report
            if made is None and ref.attribute != EVERY:
                made = TargetReport(ref.target, verdict="error", notes=["not done"])
            report.targets += [made] if made is not None else []
        report.duration_s = sum(target.duration_s for target in report.targets)
        with self._lock:
            if not self.future.done():
                self.future.set_result(report)


def _of_text(text: str, settings: Settings) -> tuple[list[OpRef], dict[str, str]]:
    """The operators of a source text, which is written to a file of its own."""
    name = f"op_{hashlib.sha256(text.encode()).hexdigest()[:12]}.py"
    folder = os.path.join(scratch_folder(), "texts")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name)
    write_whole(path, [text])
    refs = resolve(path, settings)
    # Named as the file is, without the folder, which is gone soon.
    shown = [replace(ref, target=ref.target.replace(f"{folder}{os.sep}", "")) for ref in refs]
    shown = [replace(ref, target=_from(ref.target, name)) for ref in shown]
    return shown, {name: text}


def _from(target: str, name: str) -> str:
    """``target`` from the name of its file on."""
    start = target.find(name)
    return target[start:] if start > 0 else target


def _name_of(op: Any) -> str:
    """The text of the target that an object is, so that another process can import it.

    Raises:
        GradlintError: no import finds it.
    """
    name = getattr(op, "__qualname__", "")
    module = sys.modules.get(getattr(op, "__module__", "") or "")
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not name or found is not op or module is None or module.__name__ == "__main__":
        raise GradlintError(
            f"{name or type(op).__name__} can't be imported by another process",
            place="Checker.submit",
            hint="give the text of its source, or a path such as `path/file.py:Name`; "
            "`gradlint.check(op)` checks an object in this process",
        )
    try:
        file = inspect.getsourcefile(module)
    except TypeError:
        file = None
    if file is not None and os.path.isfile(file) and "." not in module.__name__:
        return f"{os.path.relpath(file)}:{name}"
    return f"{module.__name__}:{name}"
