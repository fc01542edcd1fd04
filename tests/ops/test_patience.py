"""A limit of processor time ends a call, and no import in the middle."""

from __future__ import annotations

import importlib
import signal
import time
from pathlib import Path

import pytest

from gradlint.ops.patience import NotTried, Patience

if not hasattr(signal, "setitimer"):
    pytest.skip("this platform has no timer of processor time", allow_module_level=True)

SLOW = """
import time
end = time.process_time() + {seconds}
while time.process_time() < end:
    pass
whole = True
"""


def spend(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_a_call_that_takes_long_is_ended() -> None:
    patience = Patience(0.1)
    with (
        pytest.raises(NotTried, match="not tried: too slow at 3 x 4"),
        patience.limit(lambda: "3 x 4"),
    ):
        spend(60.0)
    with patience.limit(lambda: "2 x 2"):
        spend(0.01)
    assert patience.slow == ["3 x 4"]


def test_an_import_is_not_ended_and_what_follows_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "imported_slowly.py").write_text(SLOW.format(seconds=0.5), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    patience = Patience(0.1)
    with patience.limit(lambda: "it"):
        found = importlib.import_module("imported_slowly")
    assert found.whole
    assert patience.slow == []
    with pytest.raises(NotTried), patience.limit(lambda: "it"):
        spend(60.0)


def test_a_call_from_a_module_that_is_being_imported_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "checks_itself.py").write_text(
        "from gradlint.ops.patience import NotTried, Patience\n"
        "try:\n"
        "    with Patience(0.1).limit(lambda: 'it'):\n"
        "        while True:\n"
        "            pass\n"
        "except NotTried:\n"
        "    ended = True\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert importlib.import_module("checks_itself").ended
