"""`--untrusted`: what it promises is kept, by each means; nothing runs where it can't be had."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

if sys.platform != "linux":
    pytest.skip("confinement needs Linux", allow_module_level=True)

import escapes

from gradlint.base.errors import GradlintError
from gradlint.model.report import TargetReport
from gradlint.model.resolve import resolve_settings
from gradlint.model.settings import Settings
from gradlint.running import _landlock, _linux, _seccomp, confinement, server
from gradlint.running._schedule import schedule
from gradlint.running.call import CallTask, OpRef, call_in_worker
from gradlint.running.environment import public
from gradlint.running.job import CallWork, Confinement, Job, Means
from gradlint.running.run import execute

HERE = Path(__file__).parent
MEANS: tuple[Means, ...] = ("namespaces", "landlock")
WITNESS = "what was written here before"
SECRET = "a secret of the caller"

#: Leaves a mark where it is imported.
RUNS = """
import torch
open("mark", "w").close()
class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, grad): return grad * 2
"""

#: The fixture ``gradlint``: a folder and words give exit code and output.
Command = Callable[..., Any]


@pytest.fixture(scope="module", params=MEANS)
def confined(request: pytest.FixtureRequest) -> Confinement:
    """Each kind that works here."""
    planned = confinement._planned(request.param)
    missing = confinement._tried(planned)
    if missing is not None:
        pytest.skip(f"{request.param}: {missing}")
    return planned


def call(confined: Confinement, function: Any, *arguments: Any) -> Any:
    """What ``function`` returns in a confined worker."""
    environment = public(os.environ)
    job = Job(CallWork(function, arguments), environment=environment, confinement=confined)
    task = CallTask(job, OpRef("f", "module", "f"), Settings(), 60.0)
    schedule([task], 1)
    return task.outcome()


@pytest.fixture(scope="module")
def witness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("outside") / "witness"
    path.write_text(WITNESS)
    yield str(path)
    assert path.read_text() == WITNESS
    assert os.listdir(path.parent) == ["witness"]


def test_nothing_leads_out(confined: Confinement, witness: str) -> None:
    answers = call(confined, escapes.attempts, os.getpid(), witness)
    assert len(answers) == 44
    assert [name for name, answer in answers.items() if answer == "done"] == []
    # Refused by the confinement, and not by chance.
    assert {answer for name, answer in answers.items() if "socket" in name} == {"EPERM"}
    assert answers["connect over the network"] == "EPERM"
    assert answers["write to a file"] in ("EROFS", "EACCES")
    assert answers["signal a process"] in ("ESRCH", "EPERM")
    assert answers["trace a process"] == "EPERM"


def test_what_right_operators_need_is_left(confined: Confinement, witness: str) -> None:
    answers = call(confined, escapes.uses, witness)
    assert len(answers) == 13
    assert {name: answer for name, answer in answers.items() if answer != "done"} == {}


def test_the_scratch_folder_is_limited_and_goes_with_the_worker(confined: Confinement) -> None:
    if confined.means != "namespaces":
        pytest.skip("on a disk only the size of each file is limited")
    assert call(confined, escapes.fill) == "full"
    assert call(confined, escapes.scratch) == []


def test_no_process_stays(confined: Confinement, tmp_path: Path) -> None:
    if confined.means != "namespaces":
        pytest.skip("a process that leaves its session outlives its worker")
    path = tmp_path / "exists"
    path.touch()
    call(confined, escapes.leave_processes, str(path))
    assert [words for words in _running() if str(path) in words] == []


def test_the_environment_may_hold_secrets(
    confined: Confinement,
    monkeypatch: pytest.MonkeyPatch,
    ending_the_server: Callable[[], None],
    servers_load: Callable[[server.Load], contextlib.AbstractContextManager[None]],
) -> None:
    """Neither the worker's variables nor those that its server was started with."""
    monkeypatch.setenv("GRADLINT_SOME_TOKEN", SECRET)
    monkeypatch.setenv("PYTHON_KEYRING_PASSWORD", SECRET)
    monkeypatch.setattr(server, "_private", False)
    with servers_load("torch"):
        ending_the_server()
        server.start()
        assert SECRET in _call_unconfined(escapes.variables)
        seen = call(confined, escapes.variables)
    assert SECRET not in seen
    assert os.environ["GRADLINT_SOME_TOKEN"] == SECRET
    assert any(os.environ["PATH"] in text for text in seen)


def test_public_variables() -> None:
    given = {
        "PATH": "/bin",
        "LC_ALL": "C",
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "0",
        "TORCH_LOGS": "+dynamo",
        "PYTHONPATH": "/x",
        "TRITON_INTERPRET": "1",
        "AWS_ACCESS_KEY_ID": "s",
        "GITHUB_TOKEN": "s",
        "TORCH_HUB_TOKEN": "s",
        "PYTHON_PASSWORD": "s",
        "SSH_AUTH_SOCK": "s",
        "HOME": "/root",
        "MY_PATH": "s",
    }
    assert list(public(given)) == list(given)[:7]


# -- whole runs ------------------------------------------------------------------------------------
def _run(
    confined: Confinement | None, monkeypatch: pytest.MonkeyPatch, *targets: str, **more: Any
) -> dict[str, TargetReport]:
    monkeypatch.chdir(HERE)
    monkeypatch.setattr(confinement, "available", lambda: confined)
    settings = Settings(untrusted=confined is not None, seed=1, **more)
    run = execute(targets, settings)
    assert (run.usage, run.internal) == ([], [])
    assert run.report.environment.get("confinement") == (confined and confined.means)
    return {report.target.rpartition(":")[2]: report for report in run.report.targets}


def test_a_right_operator_passes_all_rules(
    confined: Confinement, monkeypatch: pytest.MonkeyPatch
) -> None:
    (report,) = _run(confined, monkeypatch, "victim.py:Victim").values()
    (plain,) = _run(None, monkeypatch, "victim.py:Victim").values()
    assert report.findings == []
    assert report.verdict == "pass"
    verdicts = {check.code: check.verdict for check in report.checks}
    assert verdicts == {check.code: check.verdict for check in plain.checks}
    assert (verdicts["GL401"], verdicts["GL903"]) == ("pass", "pass")


#: op → code, what the message says.
ENDINGS = {
    "SegfaultForward": ("GL005", "SIGSEGV"),
    "Abort": ("GL005", "SIGABRT"),
    "KillItself": ("GL007", "out of memory"),
    "ExitNow": ("GL005", "os._exit(0)"),
    "ExitInC": ("GL005", "exit code 0"),
    "EndlessPython": ("GL006", "timed out"),
    "CloseEverything": ("GL005", "file descriptors"),
}


def test_ends_are_told_as_without(confined: Confinement, monkeypatch: pytest.MonkeyPatch) -> None:
    targets = [f"hostile.py:{name}" for name in ENDINGS]
    reports = _run(confined, monkeypatch, *targets, select=("GL401",), timeout=5.0, jobs=2)
    for name, (code, words) in ENDINGS.items():
        finding = reports[name].findings[0]
        assert (finding.code, words in finding.message) == (code, True), finding.message
        assert finding.location is not None
        assert finding.location.file == "hostile.py"
    # The stack of what hangs was asked for by a signal, which reaches into the namespace.
    assert "in forward" in str(reports["EndlessPython"].findings[0].evidence["traceback"])


def test_the_command_that_shows_it_again_is_confined_too(
    confined: Confinement, monkeypatch: pytest.MonkeyPatch
) -> None:
    (report,) = _run(confined, monkeypatch, "forging.py:_Wrong", select=("GL401",)).values()
    assert report.verdict == "fail"
    assert report.findings[0].reproduce.endswith("--untrusted")


# -- where it can't be had -------------------------------------------------------------------------
def test_nothing_runs_where_nothing_works(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gradlint: Command
) -> None:
    (tmp_path / "ran.py").write_text(RUNS)
    monkeypatch.setattr(confinement, "_tried", lambda confined: f"no {confined.means} here")
    confinement.available.cache_clear()
    try:
        for command in ("check", "sweep", "init", "overrides", "fix"):
            done = gradlint(tmp_path, command, "ran.py:Op", "--untrusted")
            told = " ".join(done.stderr.split())
            assert done.returncode == 2
            assert "can't be confined here" in told
            assert "no namespaces here; landlock: no landlock here" in told
            assert "user namespaces" in told
        assert os.listdir(tmp_path) == ["ran.py"]
    finally:
        confinement.available.cache_clear()


def test_nothing_runs_in_a_worker_that_could_not_be_confined(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Trying worked, and the worker fails: as where a limit of namespaces is reached meanwhile."""
    (tmp_path / "ran.py").write_text(RUNS)
    broken = Confinement("landlock", str(tmp_path / "missing"))
    monkeypatch.setattr(confinement, "available", lambda: broken)
    monkeypatch.chdir(tmp_path)
    run = execute(["ran.py:Op"], Settings(untrusted=True))
    assert run.exit_code == 2
    assert "can't be confined" in str(run.usage[0])
    assert os.listdir(tmp_path) == ["ran.py"]


def test_sanitizer_and_confinement_exclude_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(untrusted=True, sanitizer="memcheck")
    with pytest.raises(GradlintError, match="compute-sanitizer"):
        confinement.confined(settings)


def test_objects_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import gradlint

    monkeypatch.setenv("GRADLINT_UNTRUSTED", "1")
    with pytest.raises(GradlintError, match="this process"):
        gradlint.check(abs)
    with pytest.raises(GradlintError, match="this process"):
        gradlint.sweep(abs)


def test_it_is_a_setting(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.gradlint]\nuntrusted = true\n")
    assert resolve_settings({}, rules={}, cwd=tmp_path, environ={}).untrusted is True
    assert resolve_settings({}, rules={}, cwd=HERE, environ={}).untrusted is False


# -- the filter of system calls -------------------------------------------------------------------
@pytest.mark.parametrize("column", [0, 1])
def test_numbers_of_system_calls(column: int) -> None:
    """Equal to the headers of Linux, as far as these know the calls."""
    header = (
        Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
        Path("/usr/include/asm-generic/unistd.h"),
    )[column]
    if not header.exists():
        pytest.skip(f"{header} is not installed")
    found = re.findall(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text(), re.M)
    known = {name: int(number) for name, number in found}
    numbers = {name: row[column] for name, row in _linux._NUMBERS.items()}
    newer = {name for name, value in numbers.items() if value and value > max(known.values())}
    assert {name: value for name, value in numbers.items() if name not in newer} == {
        name: known.get(name) for name in numbers if name not in newer
    }
    assert len(newer) < 10


@pytest.mark.parametrize("pid", [None, 1234])
def test_every_jump_of_the_filter_lands_in_it(pid: int | None) -> None:
    code = _seccomp.program(pid)
    for at, (_, yes, no, _) in enumerate(code):
        assert at + 1 + max(yes, no) < len(code) or (yes, no) == (0, 0)
        assert 0 <= yes < 256
        assert 0 <= no < 256
    assert code[-1] == (0x06, 0, 0, 0x7FFF0000)  # all else is allowed
    assert len(code) < 4096  # BPF_MAXINSNS


def test_other_processors_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(OSError, match="riscv64 are not known"):
        _seccomp.program(None)


def test_an_old_landlock_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(_landlock, "version", lambda: 2)
    with pytest.raises(OSError, match="version 2 here, 3 is needed"):
        _landlock.enter(str(tmp_path), cuda=False)


def _running() -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found.append((folder / "cmdline").read_text())
    return found


def _call_unconfined(function: Any) -> Any:
    return call_in_worker(CallWork(function), timeout=60.0)
