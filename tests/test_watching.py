"""Watching: what is saved is checked again, and nothing else; the rules of first order first."""

from __future__ import annotations

import os
import pty
import py_compile
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from gradlint.gate.changed import Saved, files_of, unchanged
from gradlint.model.op import OpRef
from gradlint.model.report import Report
from gradlint.model.settings import Settings
from gradlint.watching import Files, Happening, Session, Shown, folders_of

OPERATOR = """
import torch
{imports}

class {name}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * {factor} * x
"""

#: Seconds in which a line must have come: as long as a run of the tests may be slowed down.
PATIENCE = 300


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(path: str, name: str, factor: str, imports: str = "") -> None:
    Path(path).write_text(OPERATOR.format(name=name, factor=factor, imports=imports))


def saved(*paths: str) -> Files:
    return Files(frozenset(map(os.path.abspath, paths)), 0.0)


def session(
    happenings: Iterable[Happening | Callable[[], Happening]],
    targets: list[str],
    mending: Mending | None = None,
) -> tuple[int, list[Shown]]:
    """What a session shows until ``happenings`` end."""
    left = list(happenings)
    shown: list[Shown] = []

    def take(seconds: float) -> Happening:
        if not seconds:
            return None
        item = left.pop(0) if left else "quit"
        return item() if callable(item) else item

    settings = Settings(seed=1, select=("GL4",))
    code = Session(targets, settings, take, shown.append, mending).run()
    return code, shown


def told(shown: Shown) -> dict[str, str]:
    return {target.target: target.verdict for target in shown.run.report.targets}


def test_only_what_was_saved_is_checked_again() -> None:
    write("squares.py", "Square", "2")
    write("others.py", "Other", "2")

    def breaks() -> Happening:
        write("squares.py", "Square", "3")
        return saved("squares.py")

    code, shown = session([None, breaks, saved("unknown.py")], ["squares.py", "others.py"])
    assert [item.stage for item in shown] == ["first order", "all"] * 2
    assert told(shown[0]) == {"squares.py:Square": "pass", "others.py:Other": "pass"}
    assert told(shown[2]) == told(shown[3]) == {"squares.py:Square": "fail"}
    assert code == 1


def test_what_an_operator_imports_concerns_it() -> None:
    Path("factors.py").write_text("FACTOR = 3\n")
    write("squares.py", "Square", "FACTOR", "from factors import FACTOR")

    def mends() -> Happening:
        Path("factors.py").write_text("FACTOR = 2\n")
        return saved("factors.py")

    code, shown = session([mends], ["squares.py:Square"])
    assert [told(item)["squares.py:Square"] for item in shown] == ["fail", "fail", "pass", "pass"]
    assert code == 0


def test_two_saves_within_a_second_are_two_texts() -> None:
    def twice() -> Happening:
        seconds = {0, 1}
        while len(seconds) > 1:
            write("squares.py", "Square", "3")
            seconds = {int(os.stat("squares.py").st_mtime)}
            py_compile.compile("squares.py", doraise=True)  # what another process imports
            write("squares.py", "Square", "2")
            seconds.add(int(os.stat("squares.py").st_mtime))
        return saved("squares.py")

    twice()
    _, shown = session([], ["squares.py:Square"])
    assert [told(item)["squares.py:Square"] for item in shown] == ["pass", "pass"]


def test_a_key_checks_all_again_and_another_shows_more() -> None:
    write("squares.py", "Square", "2")
    _, shown = session(["rerun", "more"], ["squares.py"])
    assert [item.more for item in shown] == [False] * 4 + [True] * 2


class Mending:
    """Notes what is asked of it."""

    def __init__(self, *, finds: bool = True) -> None:
        self.done: list[str] = []
        self._finds = finds

    def search(self, report: Report) -> bool:
        self.done.append(", ".join(f"{one.target} {one.verdict}" for one in report.targets))
        return self._finds

    def ask(self) -> None:
        self.done.append("ask")

    def write(self) -> None:
        self.done.append("write")

    def leave(self) -> None:
        self.done.append("leave")


@pytest.mark.parametrize(
    ("happenings", "finds", "done"),
    [
        (["yes"], True, ["write"]),
        (["no"], True, ["leave"]),
        (["more", "yes"], True, ["leave"]),
        ([None, None, "yes", "yes"], True, ["write"]),
        (["rerun", "yes"], True, ["leave"]),
        (["yes"], False, []),
        ([], True, ["leave"]),  # by the end
    ],
)
def test_a_fix_is_written_only_where_yes_comes_next(
    happenings: list[Happening], finds: bool, done: list[str]
) -> None:
    write("squares.py", "Square", "3")
    mending = Mending(finds=finds)
    session(["fix", *happenings], ["squares.py:Square"], mending)
    asked = ["ask"] if finds else []
    assert mending.done == ["squares.py:Square fail", *asked, *done]


def test_yes_before_the_question_is_no_answer() -> None:
    write("squares.py", "Square", "3")
    mending = Mending()
    early: list[Happening] = []
    left: list[Happening] = ["fix", None, "quit"]

    def search(report: Report) -> bool:
        early.extend(["yes", "yes"])
        return True

    def take(seconds: float) -> Happening:
        if not seconds:
            return early.pop(0) if early else None
        return left.pop(0)

    mending.search = search  # type: ignore[method-assign]
    settings = Settings(seed=1, select=("GL401",))
    Session(["squares.py"], settings, take, lambda _: None, mending).run()
    assert mending.done == ["ask", "leave"]
    assert early == []


def test_an_answer_to_the_question_is_never_taken_for_an_early_one() -> None:
    """Whoever waits for the question answers at once."""
    write("squares.py", "Square", "3")
    mending = Mending()
    answers: list[Happening] = []
    left: list[Happening] = ["fix"]

    def ask() -> None:
        answers.append("yes")

    def take(seconds: float) -> Happening:
        if answers:
            return answers.pop()
        if not seconds:
            return None
        return left.pop(0) if left else "quit"

    mending.ask = ask  # type: ignore[method-assign]
    settings = Settings(seed=1, select=("GL401",))
    Session(["squares.py"], settings, take, lambda _: None, mending).run()
    assert mending.done == ["squares.py:Square fail", "write"]


def test_a_save_meanwhile_overtakes() -> None:
    write("squares.py", "Square", "2")
    waiting: list[Happening] = [saved("squares.py")]
    shown: list[Shown] = []

    def take(seconds: float) -> Happening:
        if len(shown) == 1 and waiting:  # while all rules run
            return waiting.pop()
        return "quit" if seconds else None

    Session(["squares.py"], Settings(seed=1, select=("GL4",)), take, shown.append).run()
    assert [item.stage for item in shown] == ["first order", "first order", "all"]


def test_a_mistake_is_shown_and_mended() -> None:
    Path("squares.py").write_text("class (")

    def mends() -> Happening:
        write("squares.py", "Square", "2")
        return saved("squares.py")

    _, shown = session([mends], ["squares.py:Square"])
    assert told(shown[-1]) == {"squares.py:Square": "pass"}


def test_no_git_is_needed() -> None:
    Path("pkg").mkdir()
    Path("pkg/__init__.py").write_text("from pkg import inner\n")
    Path("pkg/inner.py").write_text("")
    write("pkg/ops.py", "Op", "2")
    ref = OpRef("pkg/ops.py:Op", "file", "pkg/ops.py", "Op")
    assert files_of(ref, Settings()) == ["pkg/ops.py"]
    assert unchanged(Saved(["pkg/inner.py"], "."), Settings(), ref) == ""
    assert unchanged(Saved(["pkg/elsewhere.py"], "."), Settings(), ref) != ""


def test_folders_outside_are_watched(tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "ops.py").write_text("")
    inside = Path("ops.py")
    inside.write_text("")
    assert folders_of(["ops.py:Op", f"{other}/ops.py:Op", "pkg.mod:Op"]) == sorted(
        [os.getcwd(), str(other)]
    )


def test_the_command_ends_by_ctrl_c_without_a_terminal(tmp_path: Path) -> None:
    write("squares.py", "Square", "3")
    command = [sys.executable, "-m", "gradlint", "watch", "squares.py", "--select", "GL4"]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    limit = threading.Timer(PATIENCE, process.kill)
    limit.start()
    assert process.stdout is not None
    try:
        lines = iter(process.stdout.readline, "")
        assert any("all rules: 1 fail" in line for line in lines)
        write("squares.py", "Square", "2")
        assert any("rules of first order: 1 pass" in line for line in lines)
        assert any("all rules: 1 pass" in line for line in lines)
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.wait() == 130
    finally:
        limit.cancel()
        process.kill()


def test_keys_of_a_terminal_apply_a_fix(tmp_path: Path) -> None:
    pytest.importorskip("libcst")
    write("squares.py", "Square", "3")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "gradlint", "watch", "squares.py", "--select", "GL4"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    limit = threading.Timer(PATIENCE, process.kill)
    limit.start()
    assert process.stdout is not None
    try:
        lines = iter(process.stdout.readline, "")
        assert any("all rules: 1 fail" in line for line in lines)
        os.write(ours, b"f")
        assert any("grad_output * 2 * x" in line for line in lines)
        assert any("write the change?" in line for line in lines)
        before = Path("squares.py").read_text()
        assert "3 * x" in before
        os.write(ours, b"y")
        assert any("written to squares.py" in line for line in lines)
        assert any("all rules: 1 pass" in line for line in lines)  # it is a save like any other
        assert Path("squares.py").read_text() == before.replace("3 * x", "2 * x")

        write("squares.py", "Square", "3")
        assert any("all rules: 1 fail" in line for line in lines)
        os.write(ours, b"f")
        assert any("write the change?" in line for line in lines)
        os.write(ours, b"q")
        assert any("nothing was written" in line for line in lines)
        assert process.wait() == 1
        assert "3 * x" in Path("squares.py").read_text()
    finally:
        limit.cancel()
        process.kill()
        os.close(ours)
        os.close(theirs)
