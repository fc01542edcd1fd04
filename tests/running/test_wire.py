"""Events survive being cut anywhere; what is not an event of this worker does not get through."""

from __future__ import annotations

import math
import os
import socket
import struct
from typing import Any

import msgspec
import pytest

from gradlint.base.text import printable
from gradlint.model.coverage import FunctionCoverage, WayCoverage
from gradlint.model.events import (
    Begin,
    CheckDone,
    Confirmable,
    Covered,
    Event,
    Found,
    Note,
    Samples,
)
from gradlint.model.op import OpRef
from gradlint.model.report import (
    Argument,
    Check,
    Excerpt,
    Finding,
    InputPower,
    Location,
    SampleReport,
)
from gradlint.model.sweep import InputSweep, Measurement, SweepStep, SweepTarget
from gradlint.running import _wire
from gradlint.running._wire import Decoder, FrameError, Sealer
from gradlint.running.events import Done, Refs, Result, Swept

KEY = bytes(range(32))


def sent(event: Event) -> Any:
    """``event`` as it arrives."""
    (arrived,) = Decoder(KEY).feed(Sealer(KEY).frame(event))
    return arrived


def test_bytes_travel_in_one_type_only() -> None:
    call = Confirmable("s", "", '{"inputs": [0]}', [bytes(range(256)), b""])
    assert sent(call) == call
    found = Found(Finding("GL401", "n", "error", "m", evidence={"value": b"1"}))
    assert sent(found).finding.evidence == {"value": "b'1'"}


@pytest.mark.parametrize("size", [1, 7, 8, 9, 1000])
def test_frames_are_put_together_however_they_were_cut(size: int) -> None:
    events = [Begin("GL401", "s"), CheckDone(Check("GL401", "pass")), Note("x" * 500), Done()]
    sealer = Sealer(KEY)
    stream = b"".join(sealer.frame(event) for event in events)
    decoder = Decoder(KEY)
    got: list[Any] = []
    for start in range(0, len(stream), size):
        got += decoder.feed(stream[start : start + size])
    assert got == events
    assert not decoder.incomplete


def test_what_a_report_holds_arrives_as_it_was() -> None:
    finding = Finding(
        "GL401",
        "n",
        "error",
        "m",
        index=[0, 2],
        location=Location("f.py", 3),
        excerpt=Excerpt(((3, "a"), (4, "b")), "here"),
        related=[Location("g.py", 1, 2, 3, 4)],
        evidence={"x": [1, 2.0, None, True, {"y": "z"}], "huge": 1e308, "zero": -0.0},
        seed=2**63,
    )
    check = Check("GL401", "pass", "s", 1e-9, inputs=[InputPower("x", "agrees", 0.1, 0.2, 1.5)])
    samples = Samples([SampleReport("s", "given", [Argument("x", [3], "float64")], ["note"])])
    step = SweepStep(0.1, "ok", numeric=1.0)
    swept = InputSweep("x", steps=[step], measurements=[Measurement("m", 0, 0, 0, None, 1, 1, 1)])
    way = WayCoverage(3, "`a` true", ran=True)
    events = [
        Found(finding),
        CheckDone(check),
        samples,
        Covered([FunctionCoverage("a.py", "f", "backward", [3], [], [way])], ["s != 1"], ""),
        Refs([OpRef("a.py:B", "file", "a.py", "B", location=Location("a.py", 1))]),
        Swept([SweepTarget("t", sample=samples.samples[0], inputs=[swept])]),
    ]
    for event in events:
        assert sent(event) == event


def test_numbers_that_are_not_finite_arrive() -> None:
    values = sent(Result([math.inf, -math.inf, math.nan])).value
    assert values[:2] == [math.inf, -math.inf]
    assert math.isnan(values[2])


# -- What does not get through --------------------------------------------------------------------


def body_of(event: Event) -> bytes:
    return msgspec.msgpack.encode(event)


def sealed(body: bytes) -> bytes:
    """A frame that is right but for its content."""
    mac = Sealer(KEY).mac(body)
    return struct.pack(">I", len(mac) + len(body)) + mac + body


def encoded(value: Any) -> bytes:
    return msgspec.msgpack.encode(value)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"rubbish", "does not validate"),
        (encoded({"type": "Nothing"}), "does not validate"),
        (encoded({"type": "Begin", "code": "GL401"}), "missing required field"),
        (encoded({"type": "Begin", "code": 401, "sample": "s"}), "Expected `str`"),
        (encoded({"type": "Note", "text": "x", "more": 1}), "unknown field"),
        (
            encoded({"type": "CheckDone", "check": {"code": "G", "verdict": "pass", "more": 1}}),
            "something its type does not have",
        ),
        (encoded({"type": "Result", "value": b"bytes"}), "a bytes, which is not plain data"),
        (encoded({"type": "Result", "value": [{1: 2}]}), "a dict, which is not plain data"),
        (
            encoded({"type": "Result", "value": msgspec.msgpack.Ext(5, b"x")}),
            "a Ext, which is not plain data",
        ),
        (encoded({"type": "Note", "text": "x"}) + b"\0", "does not validate"),
        (b"\x82\xa4type\xa6Result\xa5value" + b"\x91" * 100_000, "does not validate"),
    ],
)
def test_what_is_not_an_event_is_refused(body: bytes, words: str) -> None:
    with pytest.raises(FrameError, match=words):
        list(Decoder(KEY).feed(sealed(body)))


def test_a_frame_with_another_key_is_refused() -> None:
    with pytest.raises(FrameError, match="own channel"):
        list(Decoder(KEY).feed(Sealer(bytes(32)).frame(Done())))


def test_a_frame_sent_again_is_refused_and_those_before_it_stay() -> None:
    frame = Sealer(KEY).frame(Note("x"))
    arriving = Decoder(KEY).feed(frame + frame)
    assert next(arriving) == Note("x")
    with pytest.raises(FrameError, match="own channel"):
        next(arriving)


@pytest.mark.parametrize("size", [0, 16, _wire.MOST_BYTES + 1, 2**32 - 1])
def test_a_size_out_of_bounds_is_refused_at_once(size: int) -> None:
    with pytest.raises(FrameError, match=f"a frame of {size:,} bytes"):
        list(Decoder(KEY).feed(struct.pack(">I", size)))


def test_a_frame_that_is_too_large_is_not_sent() -> None:
    with pytest.raises(FrameError, match="too large to send"):
        Sealer(KEY).frame(Note("x" * _wire.MOST_BYTES))


@pytest.mark.skipif(not hasattr(socket, "SCM_CREDENTIALS"), reason="Linux tells who wrote")
def test_the_kernel_says_who_wrote() -> None:
    import multiprocessing

    ours, theirs = _wire.channel(multiprocessing)
    _wire.write_all(theirs.fileno(), b"mine")
    child = os.fork()
    if child == 0:
        os.write(theirs.fileno(), b"theirs")
        os._exit(0)
    os.waitpid(child, 0)
    assert ours.read() == (b"mine", os.getpid(), False)
    assert ours.read() == (b"theirs", child, False)
    assert ours.read() == (b"", None, False)
    theirs.close()
    assert ours.read()[2]
    ours.close()


# -- The user's objects ---------------------------------------------------------------------------


class _Hostile:
    def __reduce__(self) -> tuple[object, ...]:
        return (os._exit, (9,))

    def __repr__(self) -> str:
        raise RuntimeError("no")


class _Text(str):
    pass


def test_objects_of_the_users_become_text() -> None:
    got = _wire.plain({"a": [_Hostile()], "b": _Text("x"), "c": (True, 1, 2.5, None), 3: {1}})
    assert got == {
        "a": ["<_Hostile, whose repr raises RuntimeError>"],
        "b": "x",
        "c": [True, 1, 2.5, None],
        "3": "{1}",
    }
    assert type(got["b"]) is str


def test_numbers_beyond_the_format_become_text() -> None:
    assert _wire.plain([2**64 - 1, 2**64]) == [2**64 - 1, str(2**64)]


def test_lone_surrogates_become_escapes() -> None:
    assert printable("a\udc80b") == "a\\udc80b"
    assert sent(Note("a\udc80b")) == Note("a\\udc80b")
