"""A small part of the benchmark of the cache: what is read, and what is checked anew."""

from __future__ import annotations

from tests.benchmarks.cached import GOAL, measured


def test_what_is_read() -> None:
    first, second, third = measured(4, 2, ["--select", "GL401", "-j", "1"])
    assert (first.read, first.kept) == (0, 4)
    assert (second.read, second.kept) == (4, 0)
    # The file that changed has two operators, and the other one does not mention them.
    assert (third.read, third.kept) == (2, 2)
    assert first.processor_s > 0.0
    assert GOAL == 0.05
