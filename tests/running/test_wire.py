"""Events survive being cut anywhere, and nothing of the user's travels with them."""

from __future__ import annotations

import os
import pickle

import pytest

from gradlint.model.report import Check, Finding, Location
from gradlint.running import _wire


@pytest.mark.parametrize("size", [1, 7, 8, 9, 1000])
def test_frames_are_put_together_however_they_were_cut(size: int) -> None:
    events = [("begin", ("GL401", "s")), ("check", Check("GL401", "pass")), ("note", "x" * 500)]
    stream = b"".join(_wire.encode(kind, payload) for kind, payload in events)
    decoder = _wire.Decoder()
    got = []
    for start in range(0, len(stream), size):
        got += decoder.feed(stream[start : start + size])
    assert got == events


def test_rubbish_raises() -> None:
    with pytest.raises(pickle.UnpicklingError):
        _wire.Decoder().feed(b"\0\0\0\0\0\0\0\x04abcd")


class _Hostile:
    def __reduce__(self) -> tuple[object, ...]:
        return (os._exit, (9,))

    def __repr__(self) -> str:
        raise RuntimeError("no")


class _Text(str):
    pass


def test_objects_of_the_users_become_text() -> None:
    got = _wire.plain({"a": [_Hostile()], "b": _Text("x"), "c": (True, 1, 2.5, None)})
    assert got == {
        "a": ["<_Hostile, whose repr raises RuntimeError>"],
        "b": "x",
        "c": (True, 1, 2.5, None),
    }
    assert type(got["b"]) is str


def test_dataclasses_of_the_report_stay_what_they_are() -> None:
    finding = Finding("GL401", "n", "error", "m", location=Location("f.py", 3))
    assert _wire.plain(finding) == finding


def test_lone_surrogates_become_escapes() -> None:
    assert _wire.plain("a\udc80b") == "a\\udc80b"
