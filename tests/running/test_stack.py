"""What faulthandler prints is read back, whatever names files have."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

import pytest

from gradlint.running._stack import Frame, Stack, parse, place

STDLIB = sysconfig.get_paths()["stdlib"]

DUMP = f"""\
Fatal Python error: Segmentation fault

Thread 0x00007f0000000001 (most recent call first):
  File "{STDLIB}/threading.py", line 320 in wait

Current thread 0x00007f0000000002 [python] (most recent call first):
  File "{STDLIB}/ctypes/__init__.py", line 519 in string_at
  File "/home/u/ops\\x20\\u00e9.py", line 31 in backward
  File "<frozen runpy>", line 88 in _run_code

Current thread's C stack trace (most recent call first):
  Binary file "/usr/bin/python", at _Py_DumpStack+0x31 [0x64f5b0]

Extension modules: numpy (total: 1)
"""


def test_the_current_thread_counts() -> None:
    stack = parse(DUMP)
    assert [frame.function for frame in stack.frames] == ["string_at", "backward", "_run_code"]
    assert stack.user_frame() == Frame("/home/u/ops é.py", 31, "backward")
    assert stack.user_lines() == [
        "ctypes/__init__.py:519 in string_at",
        "/home/u/ops é.py:31 in backward",
    ]


def test_another_thread_counts_where_the_current_one_has_no_frame_of_the_users() -> None:
    text = DUMP.replace("/home/u", STDLIB).replace(f"{STDLIB}/threading.py", "/home/u/loop.py")
    frame = parse(text).user_frame()
    assert frame is not None
    assert frame.file == "/home/u/loop.py"


@pytest.mark.parametrize(
    "text",
    ["", "no stack here", "Current thread 0x1 (most recent call first):\n  <no Python frame>\n"],
)
def test_no_stack(text: str) -> None:
    assert parse(text).user_frame() is None


def test_a_file_in_the_library_counts_when_the_op_is_defined_there() -> None:
    stack = Stack((Frame(f"{STDLIB}/json/decoder.py", 3, "forward"),))
    assert stack.user_frame() is None
    assert stack.user_frame(f"{STDLIB}/json/decoder.py") == stack.frames[0]


def test_place_underlines_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ops.py").write_text("a\nb\n    while True:\nc\nd\ne\n")
    location, excerpt = place(Frame(os.path.abspath("ops.py"), 3, "forward"), "here")
    assert location is not None
    assert excerpt is not None
    assert (str(location), location.end_column) == ("ops.py:3:5", 16)
    assert excerpt.lines[0] == (1, "a")
    assert dict(excerpt.lines)[3] == "    while True:"


def test_place_without_the_file() -> None:
    location, excerpt = place(Frame("/nowhere/x.py", 3, "forward"))
    assert location is not None
    assert (location.file, location.line, excerpt) == ("/nowhere/x.py", 3, None)
    assert place(None) == (None, None)
