"""A process that can neither take long nor grow large."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from gradlint.cli.bounded import OutOfBounds, in_bounds

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork")


def test_the_answer_comes_back() -> None:
    def doubled(value: list[int]) -> dict[str, Any]:
        return {"twice": [2 * part for part in value], "here": os.getpid()}

    answer = in_bounds(doubled, [1, 2], seconds=2, megabytes=64)
    assert answer["twice"] == [2, 4]
    assert answer["here"] != os.getpid()
    # More than a pipe holds.
    assert in_bounds(lambda count: "a" * count, 10**6, seconds=2, megabytes=64) == "a" * 10**6


def test_a_loop_is_ended() -> None:
    def endless(_: int) -> None:
        while True:
            pass

    with pytest.raises(OutOfBounds):
        in_bounds(endless, 0, seconds=1, megabytes=64)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on memory")
@pytest.mark.parametrize("step", [2**16, 2**40])
def test_growth_is_ended(step: int) -> None:
    def growing(step: int) -> None:
        held = []
        while True:
            held.append(bytearray(step))

    with pytest.raises(OutOfBounds):
        in_bounds(growing, step, seconds=5, megabytes=64)


def test_a_death_is_no_answer() -> None:
    with pytest.raises(OutOfBounds):
        in_bounds(lambda _: os._exit(0), 0, seconds=1, megabytes=64)


def test_a_mistake_is_shown() -> None:
    def mistaken(value: int) -> None:
        raise KeyError(f"no {value}")

    with pytest.raises(RuntimeError, match="KeyError: 'no 5'"):
        in_bounds(mistaken, 5, seconds=1, megabytes=64)
