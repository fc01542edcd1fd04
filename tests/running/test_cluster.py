"""Operators checked on a Dask cluster: the report is the local one, and nothing is lost or done
twice where workers and the scheduler are."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gradlint.base.errors import GradlintError
from gradlint.model.op import OpRef
from gradlint.model.report import Report, TargetReport, jsonable
from gradlint.model.settings import Settings
from gradlint.running import cluster as _cluster
from gradlint.running import cluster_worker
from gradlint.running.items import Item, Result, decoded, encoded, predicted_cost
from gradlint.running.run import execute
from gradlint.running.runners import check_item
from gradlint.running.shipping import bundle, unpacked
from tests.running import dask_cluster
from tests.running.dask_cluster import Cluster

pytest.importorskip("distributed")

SETTINGS = Settings(select=("GL1", "GL401"), seed=4, jobs=2)

#: Seconds after which waiting is given up: far more than is ever needed.
PATIENCE = 120.0

#: Each takes a moment, so that a worker has one in hand whenever it is killed.
OPERATORS = """
import time
import torch
from factor import FACTOR

class Op0(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        time.sleep(0.01)
        return x * FACTOR
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * FACTOR
    @staticmethod
    def sample_inputs():
        return (torch.linspace(0.5, 2.0, 6, dtype=torch.float64, requires_grad=True),)
"""

ANOTHER = """
class Op{number}(Op0):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * {factor}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "project"
    place.mkdir()
    others = [ANOTHER.format(number=n, factor=2.0 if n % 3 else 3.0) for n in range(1, 6)]
    (place / "ops.py").write_text(OPERATORS + "".join(others))
    (place / "factor.py").write_text("FACTOR = 2.0\n")
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def cluster(folder: Path, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(folder, tmp_path / "logs")
    yield made
    made.end()


#: What a time decides: the plan times a call once more where the first took long.
OF_TIME = ("duration_s", "forward_calls", "backward_calls")


def without_times(report: Report) -> Any:
    """What must be the same wherever it was found out. A pass is confirmed with directions from a
    secret seed, so the power of that differs from run to run."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items() if key not in OF_TIME}
        return [plain(item) for item in value] if isinstance(value, list) else value

    targets = plain(jsonable(report.targets))
    for target in targets:
        if target["confirmation"]:
            del target["confirmation"]["resolution"]
    return targets


def test_worker_and_scheduler_are_lost(
    folder: Path, cluster: Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    """A worker is killed while it works, then the scheduler; a new worker comes with it."""
    cluster.start_worker()
    cluster.start_worker()
    done: list[str] = []

    def progress(count: int, total: int, report: TargetReport) -> None:
        done.append(report.target)
        if len(done) == 1:
            cluster.kill_worker(0)
        if len(done) == 2:
            cluster.kill_scheduler()
            cluster.start_scheduler()
            cluster.start_worker()

    settings = dataclasses.replace(SETTINGS, cluster=cluster.address)
    run = execute(["ops.py"], settings, on_progress=progress)
    assert (run.usage, run.internal) == ([], [])
    assert sorted(done) == [f"ops.py:Op{number}" for number in range(6)]  # none twice
    assert "Traceback" not in capfd.readouterr().err
    local = execute(["ops.py"], SETTINGS)
    assert [target.verdict for target in run.report.targets] == [
        *("pass", "pass", "pass", "fail", "pass", "pass")
    ]
    assert without_times(run.report) == without_times(local.report)
    assert run.exit_code == local.exit_code == 1


def test_sources_are_sent_to_workers_that_do_not_see_them(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    # As on another machine: what the worker finds under the path is not the same.
    monkeypatch.setattr(_cluster, "digests", lambda paths: dict.fromkeys(paths, "another"))
    cluster = Cluster(elsewhere, tmp_path / "logs")
    try:
        cluster.start_worker()
        settings = dataclasses.replace(SETTINGS, cluster=cluster.address)
        run = execute(["ops.py:Op0", "ops.py:Op3"], settings)
        assert (run.usage, run.internal) == ([], [])
        assert [target.verdict for target in run.report.targets] == ["pass", "fail"]
        local = execute(["ops.py:Op0", "ops.py:Op3"], SETTINGS)
        assert without_times(run.report) == without_times(local.report)
    finally:
        cluster.end()


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a program that takes connections and says nothing."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"tcp://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize(
    ("address", "told"),
    [
        # Dask says why each of its attempts failed if the time was enough for two.
        ("tcp://127.0.0.1:9", r"Connection refused \(tried for 1 s\)|nothing answered within 1 s"),
        ("silent", "nothing answered within 1 s"),
        ("nonsense://host:1", "unknown address scheme 'nonsense'"),
    ],
)
def test_a_scheduler_that_is_not_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch, silent: str, address: str, told: str
) -> None:
    monkeypatch.setattr(_cluster, "CONNECT_S", 1.2345678)
    address = silent if address == "silent" else address
    run = execute(["ops.py"], dataclasses.replace(SETTINGS, cluster=address))
    assert run.exit_code == 2
    assert f"{address} can't be reached: " in str(run.usage[0])
    assert re.search(told, str(run.usage[0]))
    assert "1.23" not in str(run.usage[0])
    assert [target.verdict for target in run.report.targets] == ["skipped"] * 6


def test_clients_are_closed_that_did_not_connect(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask's finalizer of an open one can wait for ever for what its thread holds."""
    client = importlib.import_module("distributed").Client
    begun: list[Any] = []
    plain = client.__init__

    def noted(self: Any, *args: Any, **options: Any) -> None:
        begun.append(self)
        plain(self, *args, **options)

    monkeypatch.setattr(client, "__init__", noted)
    monkeypatch.setattr(_cluster, "CONNECT_S", 1.0)
    for address in ("nonsense://host:1", "tcp://127.0.0.1:9"):
        with pytest.raises(GradlintError, match="can't be reached"):
            _cluster.opened(address, str(folder))
    assert [made.status for made in begun] == ["closed"] * 2


def test_a_client_that_comes_too_late_is_closed() -> None:
    """What takes its time to connect goes on to, after it was given up."""
    late = threading.Event()
    client = types.SimpleNamespace(status="running", close=lambda timeout: None)

    def connect() -> types.SimpleNamespace:
        late.wait(PATIENCE)
        return client

    with pytest.raises(TimeoutError):
        _cluster._within(0.01, connect)
    assert client.status == "running"
    late.set()
    wait_for(lambda: client.status == "closed")
    assert _cluster._within(PATIENCE, lambda: 3) == 3
    with pytest.raises(OSError, match="refused"):
        _cluster._within(PATIENCE, partial(_raise, OSError("refused")))


def _raise(error: Exception) -> None:
    raise error


def test_a_cluster_without_workers(
    folder: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_cluster, "WORKERS_S", 1.0)
    run = execute(["ops.py"], dataclasses.replace(SETTINGS, cluster=cluster.address))
    assert run.exit_code == 2
    assert "has no worker" in str(run.usage[0])


def test_versions_that_differ_are_named(
    folder: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.start_worker()
    ours = {**_cluster.description(), "torch": "9.9.9"}
    monkeypatch.setattr(_cluster, "description", lambda: ours)
    settings = dataclasses.replace(SETTINGS, cluster=cluster.address)
    run = execute(["ops.py"], settings)
    assert run.exit_code == 2
    assert "instead of 9.9.9" in str(run.usage[0])
    monkeypatch.undo()
    with pytest.raises(GradlintError, match="no worker offers a GPU"):
        _cluster.opened(cluster.address, str(folder), gpu=True)


@pytest.mark.parametrize("where", ["scheduler", "worker"])
def test_gradlint_is_not_installed_there(folder: Path, tmp_path: Path, where: str) -> None:
    """A package of that name comes first there, which is as absent as can be."""
    without = tmp_path / "without" / "gradlint"
    without.mkdir(parents=True)
    text = "raise ModuleNotFoundError(\"No module named 'gradlint'\", name='gradlint')"
    (without / "__init__.py").write_text(text)
    cluster = Cluster(without.parent if where == "scheduler" else folder, tmp_path / "logs")
    try:
        cluster.folder = without.parent if where == "worker" else folder
        cluster.start_worker()
        run = execute(["ops.py"], dataclasses.replace(SETTINGS, cluster=cluster.address))
    finally:
        cluster.end()
    assert run.exit_code == 2
    assert "gradlint is not installed there" in str(run.usage[0])
    assert ("the scheduler: " in str(run.usage[0])) == (where == "scheduler")
    assert "pip" not in str(run.usage[0])


def test_a_worker_without_gradlint_that_came_later() -> None:
    raised = RuntimeError("Error during deserialization of the task graph")
    raised.__cause__ = ModuleNotFoundError("No module named 'gradlint'", name="gradlint")
    told = _cluster._outcome(raised)
    assert isinstance(told, bytes)
    assert [m.message for m in decoded(told, Result).usage] == [
        "a worker: gradlint is not installed there"
    ]
    other = _cluster._outcome(RuntimeError("another"))
    assert str(other) == "RuntimeError: another"


def test_a_worker_whose_disk_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    def unpacked(*_: Any) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cluster_worker, "unpacked", unpacked)
    made = cluster_worker.work(b"", "", _cluster.description(), (b"", "", ""), {}, "key")
    (mistake,) = decoded(made, Result).usage
    assert "can't write the sources: No space left on device" in mistake.message


# -- an end before the end -------------------------------------------------------------------------

ENDLESS = """
class Endless(Op0):
    @staticmethod
    def forward(ctx, x):
        import os
        with open("starting", "w") as file:
            file.write(str(os.getpid()))
        os.replace("starting", "running")
        time.sleep(1000)
        return x * FACTOR
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_the_run_ends(folder: Path, cluster: Cluster, how: signal.Signals) -> None:
    """What was done is reported, and what its workers had in hand ends, though they go on."""
    text = (folder / "ops.py").read_text()
    (folder / "ops.py").write_text(text + ENDLESS)
    cluster.start_worker()
    words = ["check", "ops.py:Op0", "ops.py:Endless", "--cluster", cluster.address]
    words += ["--select", "GL1,GL401", "--timeout", "900", "--report", "json=found.json"]
    # It begins last: the predicted cost of a longer definition is higher, so another is first.
    run = subprocess.Popen(
        [sys.executable, "-m", "gradlint", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        wait_for((folder / "running").exists)
        pid = int((folder / "running").read_text())
        run.send_signal(how)
        _, told = run.communicate(timeout=PATIENCE)
        assert "Traceback" not in told
        if how == signal.SIGINT:
            assert run.returncode == 130, told
            found = json.loads((folder / "found.json").read_text())
            assert found["interrupted"]
            assert [target["target"] for target in found["targets"]] == words[1:3]
            assert found["targets"][1]["notes"] == ["interrupted"]
        wait_for(lambda: not Path(f"/proc/{pid}").exists())
        assert cluster.workers[0].poll() is None
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
    # The worker is free for another run.
    after = execute(["ops.py:Op1"], dataclasses.replace(SETTINGS, cluster=cluster.address))
    assert [target.verdict for target in after.report.targets] == ["pass"]


def wait_for(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.1)


# -- GPUs ------------------------------------------------------------------------------------------

ON_GPU = Settings(devices=("cuda",))


def items(settings: Settings, count: int) -> list[bytes]:
    """Items that nothing but a stand-in for the work of a worker can do here."""
    names = [f"Op{number}" for number in range(count)]
    refs = [OpRef(f"x.py:{name}", "library", "x", name) for name in names]
    return [encoded(Item(ref, settings)) for ref in refs]


def test_a_gpu_is_not_shared(
    folder: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker with four threads and one GPU: items on the GPU one by one, others together."""
    monkeypatch.setattr(_cluster, "work", dask_cluster.stand_in)
    cluster.start_worker("--nthreads", "4", "--resources", "GPU=1")
    most = {}
    for settings in (ON_GPU, Settings()):
        with _cluster.opened(cluster.address, str(folder), gpu=True) as executor:
            futures = [executor.submit(check_item, data) for data in items(settings, 4)]
            most[settings.devices] = max(
                int(decoded(future.result(PATIENCE), Result).why) for future in futures
            )
    assert most[("cuda",)] == 1
    assert most[("cpu",)] > 1


def test_the_last_gpu_goes(folder: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker without one is left, which can't do what waits."""
    monkeypatch.setattr(_cluster, "work", dask_cluster.stand_in)
    monkeypatch.setattr(_cluster, "_COUNT_S", 0.2)
    cluster.start_worker("--resources", "GPU=1")
    with _cluster.opened(cluster.address, str(folder), gpu=True) as executor:
        cluster.start_worker()
        wait_for(lambda: executor._workers(gpu=False) == 2)
        monkeypatch.setattr(_cluster, "WORKERS_S", 2.0)
        cluster.kill_worker(0)
        (data,) = items(ON_GPU, 1)
        future = executor.submit(check_item, data)
        with pytest.raises(_cluster.ClusterLost, match="no worker that offers a GPU was there"):
            future.result(PATIENCE)


def test_the_processes_of_a_local_cluster_share_no_gpu() -> None:
    with pytest.raises(GradlintError, match="would share the GPU") as caught:
        _cluster.opened("local:2", ".", gpu=True)
    assert "--resources GPU=1" in caught.value.hint


def test_without_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(GradlintError) as caught:
        _cluster.opened("tcp://127.0.0.1:1", ".")
    assert 'pip install "gradlint[dask]"' in caught.value.hint


# -- items and bundles -----------------------------------------------------------------------------


def test_items_and_results_are_data() -> None:
    ref = OpRef("ops.py:Op", "file", "ops.py", "Op", "function")
    item = Item(ref, Settings(dtypes=("float32",), timeout=3.5), 2.5, 9.0, {"a.py": "x"})
    assert decoded(encoded(item), Item) == item
    result = Result("host", TargetReport("ops.py:Op", verdict="pass"), files=["a"], why="b")
    assert decoded(encoded(result), Result) == result
    for data in (b"", b"\xff", encoded(item)[:-1], encoded(item)):
        with pytest.raises(ValueError, match="no Result"):
            decoded(data, Result)


def test_long_items_cost_more() -> None:
    ref = OpRef("ops.py:Op", "file", "ops.py", "Op", "function")
    one = predicted_cost(ref, Settings())
    assert predicted_cost(dataclasses.replace(ref, kind="module"), Settings()) > one
    assert predicted_cost(ref, Settings(dtypes=("float64", "float32"))) == 2 * one
    assert predicted_cost(ref, Settings(devices=("cpu", "cuda"))) == 2 * one
    assert Item(ref, Settings(devices=("cuda",))).needs_gpu
    assert not Item(ref, Settings()).needs_gpu


def test_a_bundle_is_the_checkout(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "src" / "data").mkdir(parents=True)
    (tmp_path / "src" / "ops.py").write_text("x = 1\n")
    (tmp_path / "src" / "data" / "table.json").write_text("{}")
    (tmp_path / "other.py").write_text("y = 1\n")
    made = bundle(str(tmp_path / "src"), [str(tmp_path / "src" / "ops.py")])
    assert made == bundle(str(tmp_path / "src"), [])
    folder = Path(unpacked(made.data, made.name, made.inside))
    assert folder.name == "src"
    assert (folder / "ops.py").read_text() == "x = 1\n"
    assert (folder / "data" / "table.json").read_text() == "{}"
    assert (folder.parent / "other.py").read_text() == "y = 1\n"
    shutil.rmtree(folder.parent)


def test_what_can_not_be_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "outside.py").write_text("")
    with pytest.raises(GradlintError, match="lies outside"):
        bundle(str(tmp_path / "inside"), [str(tmp_path / "outside.py")])
    (tmp_path / "inside" / "large.bin").write_bytes(bytes(2000))
    monkeypatch.setattr("gradlint.running.shipping.MOST_BYTES", 1000)
    with pytest.raises(GradlintError, match="holds more than"):
        bundle(str(tmp_path / "inside"), [])
