"""Instructions and branches are noted alike by both ways of watching: sys.settrace up to Python
3.11, sys.monitoring from 3.12 on. Each Python that is found on the path is tried."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from types import CodeType

import pytest

from gradlint.trace import executed
from gradlint.trace.executed import Executed, spans

FILE = Path(executed.__file__)

PROGRAM = textwrap.dedent("""
    import importlib.util, sys, threading

    spec = importlib.util.spec_from_file_location("executed", sys.argv[1])
    module = importlib.util.module_from_spec(spec)
    sys.modules["executed"] = module
    spec.loader.exec_module(module)

    def helper(x):
        if x > 3:
            return 1
        return 2

    def f(x, flag):
        y = x * 2 if flag else -x
        if flag and x > 5:
            y += 1
        for i in range(3):
            y += helper(i)
        return y

    def unseen():
        return 1

    watched = module.Executed(lambda code: code.co_name in ("f", "helper"))
    with watched.watching():
        f(1, True)
        unseen()
    with watched.watching():
        f(9, True)
    f(1, False)

    def words(code):
        lines, spans = open(__file__).read().splitlines(), module.spans(code)
        ran = {spans[offset] for offset in watched.offsets[code] if offset in spans}
        return {lines[a - 1][c:d].strip() for a, b, c, d in ran if a == b and c is not None}

    first = {code.co_name: code for code in watched.offsets}
    assert sorted(first) == ["f", "helper"], first
    assert watched.complete
    assert {"return 2", "2"} & words(first["helper"]) or sys.version_info < (3, 11)
    assert "1" not in words(first["helper"])
    if sys.version_info >= (3, 11):
        assert "x * 2" in words(first["f"]) and "-x" not in words(first["f"])
    spans = module.spans(first["f"])
    ways = {
        (spans[jump][0], spans[target][0])
        for jump, target in watched.branches[first["f"]]
        if spans[jump][0] != spans[target][0]
    }
    line = first["f"].co_firstlineno + 2
    assert {(line, line + 1), (line, line + 2)} <= ways, ways
    assert watched.phases == {code: {"forward"} for code in first.values()}
    assert sys.gettrace() is None
    if hasattr(sys, "monitoring"):
        assert [sys.monitoring.get_tool(number) for number in range(6)] == [None] * 6
    print("both", "monitoring" if hasattr(sys, "monitoring") else "settrace")
""")

OTHERS = [shutil.which(f"python3.{minor}") for minor in range(10, 15)]
PYTHONS = [sys.executable, *(path for path in OTHERS if path is not None)]


@pytest.mark.parametrize("python", PYTHONS)
def test_instructions_and_branches_under_each_python(python: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    done = subprocess.run(
        [python, str(program), str(FILE)], capture_output=True, text=True, check=False
    )
    if "No module named" in done.stderr or "command not found" in done.stderr:
        pytest.skip("not a whole Python")
    assert done.stdout.startswith("both "), done.stderr


def sample(flag: bool) -> int:
    total = 0
    for number in range(50):
        total += number
    if flag:
        total *= 2
    return total


def mine(code: CodeType) -> bool:
    return code is sample.__code__


def lines_of(watched: Executed) -> set[int]:
    code = sample.__code__
    known = spans(code)
    return {known[o][0] - code.co_firstlineno for o in watched.offsets[code] if o in known}


def test_what_another_thread_runs_is_noted_where_it_is_watched() -> None:
    watched = Executed(mine)

    def work() -> None:
        with watched.in_this_thread():
            sample(False)

    with watched.watching():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert lines_of(watched) == {1, 2, 3, 4, 6}


def test_the_trace_function_before_is_put_back() -> None:
    def other(*_: object) -> None:
        return None

    before = sys.gettrace()
    sys.settrace(other)
    try:
        with Executed(mine).watching():
            sample(True)
        assert sys.gettrace() is other
    finally:
        sys.settrace(before)


@pytest.mark.skipif(hasattr(sys, "monitoring"), reason="sys.monitoring needs no limit")
def test_beyond_the_limit_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executed, "MOST_STEPS", 100)
    watched = Executed(mine)
    with watched.watching():
        sample(True)
    assert not watched.complete
    assert 6 not in lines_of(watched)


def test_phases() -> None:
    watched = Executed(mine)
    with watched.watching():
        sample(True)
        watched.phase = "backward"
        sample(True)
    assert watched.phases[sample.__code__] == {"forward", "backward"}
