"""The inputs of planted bugs as ``--inputs`` takes them: ``tests.benchmarks.support.bug_inputs:
bug_17`` is a function that gives those of the bug at place 17 among all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.benchmarks.support.planted_bugs import all_bugs


def __getattr__(name: str) -> Callable[[], tuple[Any, ...]]:
    word, _, place = name.partition("_")
    if word != "bug" or not place.isdigit():
        raise AttributeError(name)
    return all_bugs()[int(place)].inputs
