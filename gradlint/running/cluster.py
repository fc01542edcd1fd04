"""Items done by the workers of a Dask cluster.

A worker of Dask runs none of the operator's code itself: it hands an item to a runner, a process of
its own, whose workers are those of any run of gradlint.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import logging
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Executor, Future, InvalidStateError, wait
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from gradlint.base.errors import GradlintError
from gradlint.base.text import error_line, without_password
from gradlint.running.cluster_worker import (
    GPU,
    PLACE,
    description,
    differences,
    looked_at,
    same,
    work,
)
from gradlint.running.items import Item, Mistake, Result, decoded, encoded
from gradlint.running.runners import RunnerLost, check_item
from gradlint.running.shipping import MOST_PROBES, Bundle, bundle, digests
from gradlint.targets.locate import folder_files

#: Seconds in which a scheduler must answer, and in which one that went away must come back.
CONNECT_S, RETURN_S = 20.0, 120.0

#: Seconds in which a worker must be there, at the start and later.
WORKERS_S = 120.0

#: Seconds by which an attempt to connect may exceed its limit.
_GRACE_S = 3.0

#: Seconds between two looks at what is done (heuristic: an item takes a second or more).
_LOOK_S = 0.05

#: Seconds between two looks at which workers there are.
_COUNT_S = 5.0

#: Seconds in which a result that is there must arrive.
_FETCH_S = 60.0

#: Times that an item is sent; more often than workers may be lost with it (Dask gives up after
#: three), as it is also sent again where the scheduler is lost.
_MOST_SENT = 10

#: How Python says that gradlint can't be imported, and what is said of it here.
_ABSENT = re.compile(r"No module named \W{0,2}gradlint")
_NOT_INSTALLED = "gradlint is not installed there"


class ClusterLost(RuntimeError):
    """The cluster went away and did not come back."""


def opened(address: str, folder: str, *, gpu: bool = False) -> ClusterExecutor:
    """The executor for the cluster at ``address``.

    Args:
        address: of a scheduler, or "local:N" for N processes here.
        folder: the working directory.
        gpu: whether items need GPUs.

    Raises:
        GradlintError: Dask is not installed, the cluster can't be reached or has no worker, or its
            workers have other versions than this process.
    """
    try:
        dask = importlib.import_module("distributed")
    except ImportError:
        raise GradlintError(
            "Dask is not installed",
            place=PLACE,
            hint='run `pip install "gradlint[dask]"`',
        ) from None
    return ClusterExecutor(dask, address.strip(), folder, gpu)


@dataclass
class _Sent:
    """An item on its way.

    Args:
        data: encoded; item: the same.
        future: what waits for it here; remote: Dask's, once it was sent.
        times: that it was sent.
    """

    data: bytes
    item: Item
    future: Future[bytes]
    remote: Any = None
    times: int = 0


class ClusterExecutor(Executor):
    """Sends items to a cluster, and again where a worker or the scheduler is lost.

    Every item has one result, whatever is lost: what comes twice is dropped.
    """

    def __init__(self, dask: Any, address: str, folder: str, gpu: bool) -> None:
        self._dask = dask
        self._address = address
        self._folder = folder
        self._cluster: Any = None
        self._client: Any = None
        self._versions = description()
        self._bundle: Bundle | None = None
        self._sources: Any = None
        self._sent: dict[int, _Sent] = {}
        self._count = 0
        self._run = os.urandom(6).hex()
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._no_more = False
        self._quiet = ExitStack()
        # What is lost is said here, in our words; Dask's come with tracebacks.
        self._quiet.enter_context(dask.utils.silence_logging_cmgr(logging.CRITICAL))
        try:
            if address.startswith("local:"):
                self._cluster = self._local(int(address.removeprefix("local:")), gpu)
            self._client = self._connected(CONNECT_S)
            self.shared = self._look(gpu)
        except BaseException:
            self._end()
            raise
        self._keeper = threading.Thread(target=self._keep, name="gradlint-cluster", daemon=True)
        self._keeper.start()

    def submit(  # type: ignore[override]
        self, fn: Callable[..., bytes], /, data: bytes, *_: Any, **__: Any
    ) -> Future[bytes]:
        """Send the item that ``data`` holds.

        Args:
            fn: :func:`gradlint.running.runners.check_item`, whose place the workers' own takes.
            data: an item, encoded.
        """
        assert fn is check_item
        item = decoded(data, Item)
        if not (self.shared or item.files or self._bundle):
            self._bundle = bundle(
                self._folder, [item.ref.path] if item.ref.source == "file" else []
            )
        future: Future[bytes] = Future()
        with self._lock:
            if self._no_more:
                raise RuntimeError("the cluster was closed")
            self._count += 1
            self._sent[self._count] = sent = _Sent(data, item, future)
            self._send(self._count, sent)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for what was sent, or drop it, and leave the cluster."""
        with self._lock:
            self._no_more = True
            waiting = [sent.future for sent in self._sent.values()]
            if cancel_futures:
                self._sent.clear()
        for future in waiting:
            if cancel_futures:
                future.cancel()
            elif wait:
                with suppress(BaseException):
                    future.exception()
        self._closing.set()
        if threading.current_thread() is not self._keeper:
            self._keeper.join()
        self._end()

    # -- the cluster ----------------------------------------------------------------------------

    def _local(self, count: int, gpu: bool) -> Any:
        if gpu and count > 1:
            raise GradlintError(
                "the processes of a local cluster would share the GPU",
                place=PLACE,
                hint="use local:1, or start one worker for each GPU: `CUDA_VISIBLE_DEVICES=0 dask "
                "worker ADDRESS --nthreads 1 --resources GPU=1`",
            )
        return self._dask.LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
            memory_limit=0,  # gradlint's own workers have limits
            resources={GPU: 1} if gpu else None,
            silence_logs=50,
            security=True if _has("cryptography") else None,
        )

    def _connected(self, patience: float) -> Any:
        """A client, once the scheduler answers.

        Raises:
            GradlintError: it does not.
        """
        end = time.monotonic() + patience
        while True:
            limit = max(1.0, min(CONNECT_S, end - time.monotonic()))
            try:
                return _within(limit + _GRACE_S, partial(self._client_of, limit))
            except Exception as error:
                if time.monotonic() < end and patience > CONNECT_S:
                    time.sleep(1.0)
                    continue
                raise GradlintError(
                    f"{without_password(self._address)} can't be reached: "
                    f"{_why_unreachable(error, patience)}",
                    place=PLACE,
                    hint="is the scheduler running, and may this machine connect to it?",
                ) from None

    def _client_of(self, limit: float) -> Any:
        kind = self._dask.Client
        client = kind.__new__(kind)  # at hand to be closed where it can't connect
        try:
            client.__init__(self._cluster or self._address, timeout=limit, set_as_default=False)
        except BaseException:
            _close(client, 1.0)
            raise
        return client

    def _look(self, gpu: bool) -> bool:
        """Look at all workers. Returns whether all see the folder of this run.

        Raises:
            GradlintError: there is none, or one that can't be used.
        """
        probes = [os.path.abspath(path) for path, _ in zip(
            folder_files(self._folder), range(MOST_PROBES), strict=False
        )]  # fmt: skip
        try:
            self._client.wait_for_workers(1, timeout=WORKERS_S)
        except Exception:
            raise GradlintError(
                f"{without_password(self._address)} has no worker", place=PLACE,
                hint="start one: `dask worker ADDRESS`",
            ) from None  # fmt: skip
        wrong = []
        try:
            self._client.run_on_scheduler(description)  # what is sent passes through it
        except Exception as error:
            if _lacks_gradlint(error):
                wrong.append(f"the scheduler: {_NOT_INSTALLED}")
        found = self._client.run(looked_at, probes, self._folder, on_error="return")
        for name, answer in sorted(found.items()):
            if not isinstance(answer, dict):
                wrong.append(f"{name}: {_told(answer)}")
            elif differ := differences(self._versions, answer["versions"]):
                wrong.append(f"{name} on {answer['host']}: {differ}")
        if wrong:
            raise GradlintError(
                "workers can't do what this process asks: " + "; ".join(wrong),
                place=PLACE,
                hint="install the same versions of Python, torch and gradlint everywhere",
            )
        if gpu and not any(answer["gpus"] for answer in found.values()):
            raise GradlintError(
                "no worker offers a GPU", place=PLACE,
                hint="start one for each: `CUDA_VISIBLE_DEVICES=0 dask worker ADDRESS --nthreads 1 "
                "--resources GPU=1`",
            )  # fmt: skip
        ours = digests(probes)
        return all(answer["folder"] and answer["files"] == ours for answer in found.values())

    def _end(self) -> None:
        if self._client is not None:
            _close(self._client, 5.0)
        if self._cluster is not None:
            with suppress(Exception):
                self._cluster.close(timeout=5)
        self._client = self._cluster = None
        self._quiet.close()

    # -- items ----------------------------------------------------------------------------------

    def _send(self, number: int, sent: _Sent) -> None:
        sent.times += 1
        sources = None
        if self._bundle is not None and not sent.item.files:
            if self._sources is None:
                made = (self._bundle.data, self._bundle.name, self._bundle.inside)
                key = f"gradlint-sources-{self._bundle.name}-{self._run}"
                self._sources = self._client.submit(same, made, key=key)
            sources = self._sources
        folder = self._folder if self.shared else ""
        key = f"gradlint-{self._run}-{number}-{sent.times}"
        sent.remote = self._client.submit(
            work,
            sent.data,
            folder,
            self._versions,
            sources,
            self._files(sent.item),
            key,
            key=key,
            pure=False,
            priority=sent.item.cost,
            resources={GPU: 1} if sent.item.needs_gpu else None,
        )

    def _files(self, item: Item) -> dict[str, str]:
        """What a worker must see as this process does."""
        if not self.shared or item.files or item.ref.source not in ("file", "spec"):
            return {}
        return digests([os.path.abspath(item.ref.path)])

    def _keep(self) -> None:
        """Take what is done, and send again what was lost, until the end."""
        looked = seen = time.monotonic()
        while not self._closing.wait(_LOOK_S):
            with self._lock:
                waiting = list(self._sent.items())
            lost = [number for number, sent in waiting if not self._taken(number, sent)]
            now = time.monotonic()
            if self._client.status != "running":
                self._come_back()
                looked = seen = time.monotonic()
            elif lost:
                self._again(lost)
            elif waiting and now - looked > _COUNT_S:
                looked = now
                gpu = all(sent.item.needs_gpu for _, sent in waiting)
                with suppress(Exception):
                    seen = now if self._workers(gpu) else seen
                if now - seen > WORKERS_S:
                    kind = "worker that offers a GPU" if gpu else "worker"
                    self._give_up(f"no {kind} was there for {WORKERS_S:g} s")

    def _workers(self, gpu: bool) -> int:
        """How many workers there are that can do what waits."""
        try:
            told = self._client.scheduler_info(n_workers=-1)
        except TypeError:  # before Dask 2025, which told of all of them
            told = self._client.scheduler_info()
        workers = told["workers"].values()
        return sum(not gpu or bool(worker["resources"].get(GPU)) for worker in workers)

    def _taken(self, number: int, sent: _Sent) -> bool:
        """Take the result, if there is one. Returns whether nothing was lost."""
        status = sent.remote.status
        if status == "pending":
            return True
        if status in ("cancelled", "lost"):
            return False
        try:
            outcome = sent.remote.result(timeout=_FETCH_S)
        except (CancelledError, TimeoutError, OSError):
            return False
        except Exception as error:
            if type(error).__name__ in ("FutureCancelledError", "CommClosedError"):
                return False
            outcome = _outcome(error)
        self._conclude(number, outcome)
        return True

    def _conclude(self, number: int, outcome: bytes | Exception) -> None:
        with self._lock:
            sent = self._sent.pop(number, None)
        if sent is None:
            return
        sent.remote = None  # so that the workers may forget it
        if isinstance(outcome, Exception):
            sent.future.set_exception(outcome)
        else:
            sent.future.set_result(outcome)

    def _again(self, numbers: Iterable[int]) -> None:
        self._sources = None
        for number in numbers:
            with self._lock:
                sent = self._sent.get(number)
            if sent is None:
                continue
            if sent.times >= _MOST_SENT:
                self._conclude(number, ClusterLost(f"it was lost {sent.times} times"))
                continue
            with suppress(Exception):  # looked at again soon
                self._send(number, sent)

    def _come_back(self) -> None:
        """Connect anew to a scheduler that went away, and send again what it knew."""
        _close(self._client, 2.0)
        try:
            if self._cluster is not None:
                raise GradlintError("the local cluster ended")
            client = self._connected(RETURN_S)
            self._client = client
            self._client.wait_for_workers(1, timeout=WORKERS_S)
        except Exception as error:
            self._give_up(error_line(error))
            return
        with self._lock:
            numbers = list(self._sent)
        self._again(numbers)

    def _give_up(self, why: str) -> None:
        with self._lock:
            numbers = list(self._sent)
        for number in numbers:
            self._conclude(number, ClusterLost(f"the cluster was lost: {why}"))
        self._closing.set()


def _close(client: Any, seconds: float) -> None:
    """Close a client, or give it up after ``seconds``, so that nothing is left to do for its
    finalizer. Dask's closes a client that is still open in whatever thread the garbage collector
    runs, and waits there for a lock of all clients: for ever, if that thread holds it because it
    starts another."""
    with suppress(Exception):
        client.close(timeout=seconds)
    client.status = "closed"


def _within(seconds: float, connect: Callable[[], Any]) -> Any:
    """The client that ``connect`` returns. Dask has limits of its own, and waits for ever all the
    same for what takes its connection and never answers.

    Raises:
        TimeoutError: it took longer; a client that comes later is closed.
    """
    made: Future[Any] = Future()

    def run() -> None:
        try:
            client = connect()
        except BaseException as error:
            if not made.cancelled():
                made.set_exception(error)
            return
        try:
            made.set_result(client)
        except InvalidStateError:
            _close(client, 1.0)

    threading.Thread(target=run, name="gradlint-connects", daemon=True).start()
    wait([made], seconds)
    if made.cancel():
        raise TimeoutError
    return made.result()


def _why_unreachable(error: BaseException, patience: float) -> str:
    """Why no scheduler answered. Dask tries until its time is over, and tells of that alone."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, socket.gaierror):
            return f"its name is not known here ({cause.strerror})"
        if isinstance(cause, OSError) and cause.strerror:
            return f"{cause.strerror} (tried for {patience:.0f} s)"
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, (TimeoutError, OSError)):
        return f"nothing answered within {patience:.0f} s"
    if isinstance(error, ValueError):  # of the address
        return error_line(error)
    return f"what answers there is no scheduler that this Dask understands ({error_line(error)})"


def _outcome(error: Exception) -> bytes | RunnerLost:
    """What came of an item whose task raised ``error``."""
    if _lacks_gradlint(error):  # a worker that came after the others were looked at
        mistake = Mistake("GradlintError", f"a worker: {_NOT_INSTALLED}", PLACE)
        return encoded(Result("", usage=[mistake]))
    lost = type(error).__name__ == "KilledWorker"
    told = "the workers of the cluster that did it ended" if lost else error_line(error)
    return RunnerLost(told)


def _told(error: BaseException) -> str:
    """What is said of an error that comes from a worker or the scheduler."""
    return _NOT_INSTALLED if _lacks_gradlint(error) else error_line(error)


def _lacks_gradlint(error: BaseException) -> bool:
    """Whether ``error`` is that gradlint can't be imported there. Dask tells of the error of
    another process in texts of its own."""
    known: BaseException | None = error
    while known is not None:
        if _ABSENT.search(f"{known!r}"):
            return True
        known = known.__cause__ or known.__context__
    return False


def _has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None
