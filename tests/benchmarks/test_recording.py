"""Recorded programs leave what was asked for; the benchmark itself runs."""

from __future__ import annotations

import pytest

from tests.benchmarks.recording import PROGRAMS, seconds


@pytest.mark.parametrize("recorded", [False, True])
def test_a_program_measures_itself(recorded: bool) -> None:
    program = next(iter(PROGRAMS))
    assert seconds(program, recorded=recorded, share=1e-9) > 0
