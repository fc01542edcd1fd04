"""Side effects of a call: seen, told, and put back."""

from __future__ import annotations

import os
import random
import sys
import threading

import pytest
import torch

from gradlint.trace._effects import FLOOD_BYTES, observed_effects


def run(body, seed=5):
    torch.manual_seed(seed)
    with observed_effects(seed) as effects:
        body()
    return effects


CASES = {
    "default dtype": (lambda: torch.set_default_dtype(torch.float64), "default dtype"),
    "cwd": (lambda: os.chdir("/"), "working directory"),
    "seed": (lambda: torch.manual_seed(99), "generator is seeded"),
    "environment": (lambda: os.environ.update(PLANTED="1"), "PLANTED"),
    "threads": (lambda: torch.set_num_threads(torch.get_num_threads() + 1), "number of threads"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_change_is_told_and_put_back(name):
    body, word = CASES[name]
    before = (torch.get_default_dtype(), os.getcwd(), torch.get_num_threads())
    effects = run(body)
    assert len(effects.texts) == 1
    assert word in effects.texts[0]
    assert (torch.get_default_dtype(), os.getcwd(), torch.get_num_threads()) == before
    assert "PLANTED" not in os.environ


def test_drawing_random_numbers_is_no_change():
    assert run(lambda: (torch.rand(3), random.random())).texts == []


def test_a_thread_left_running():
    stop = threading.Event()
    try:
        effects = run(lambda: threading.Thread(target=stop.wait, daemon=True).start())
    finally:
        stop.set()
    assert effects.texts == ["1 thread left running"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no os.fork here")
def test_a_fork_that_ends_is_told():
    def body():
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)

    assert run(body).texts == ["os.fork is called"]


def test_a_flood_is_measured_and_a_line_is_not(capfd):
    line = run(lambda: os.write(1, b"progress\n"))
    flood = run(lambda: [os.write(1, b"x" * 2**20) for _ in range(3)])
    assert (line.texts, line.flooded) == ([], False)
    assert flood.flooded
    assert flood.texts == [f"{3 * FLOOD_BYTES / 1e6:,.0f} MB printed in one call"]


def test_a_closed_descriptor_is_put_back(capfd):
    effects = run(lambda: os.close(1))
    assert effects.texts == ["descriptor 1 was closed or replaced"]
    assert os.write(1, b"") == 0
    assert sys.__stdout__ is not None
