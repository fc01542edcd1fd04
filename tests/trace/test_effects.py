"""Side effects of a call: seen, told, and put back."""

from __future__ import annotations

import os
import random
import sys
import threading
import warnings

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from gradlint.experiments.loading.process_effects import FLOOD_BYTES, observed_effects
from gradlint.trace import _modes


class Functions(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class Dispatches(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


#: Modes that are entered and not left are held here, as an op would.
held = []


def enter(mode):
    held.append(mode)
    mode.__enter__()


def pairs():
    return torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)


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
    "inference": (lambda: enter(torch.inference_mode()), "inference mode: False → True"),
    "functions": (lambda: enter(Functions()), "function modes: none → Functions"),
    "dispatches": (lambda: enter(Dispatches()), "dispatch modes: none → Dispatches"),
    "hooks": (lambda: enter(pairs()), "saved tensor hooks: none → <lambda>, <lambda>"),
    "trace": (lambda: sys.settrace(print), "sys.settrace"),
    "profile": (lambda: sys.setprofile(lambda *_: None), "sys.setprofile: none → <lambda>"),
    "filters": (lambda: warnings.simplefilter("error"), "warning filters changed"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_change_is_told_and_put_back(name):
    if name == "hooks" and _modes._top_hooks is None:
        pytest.skip("this PyTorch can't tell which hooks there are")
    body, word = CASES[name]
    before = (torch.get_default_dtype(), os.getcwd(), torch.get_num_threads())
    effects = run(body)
    assert len(effects.texts) == 1
    assert word in effects.texts[0]
    assert (torch.get_default_dtype(), os.getcwd(), torch.get_num_threads()) == before
    assert "PLANTED" not in os.environ
    assert (torch.is_inference_mode_enabled(), torch.is_grad_enabled()) == (False, True)
    assert (_modes.functions(), _modes.dispatches(), _modes.hooks()) == ((), (), None)
    assert sys.getprofile() is None


def test_modes_that_are_left_again_are_no_change():
    def body():
        with torch.inference_mode(), Functions(), Dispatches(), pairs(), warnings.catch_warnings():
            warnings.simplefilter("error")

    assert run(body).texts == []


def test_a_mode_of_the_caller_stays():
    with Functions() as mode, pairs():
        outer = _modes.hooks()
        assert len(run(lambda: enter(Functions())).texts) == 1
        assert _modes.functions() == (mode,)
        assert _modes.hooks() == outer


def test_descriptors_are_counted():
    opened = []
    try:
        assert run(lambda: opened.append(os.open(os.devnull, os.O_RDONLY))).opened == 1
    finally:
        os.close(opened[0])
    assert run(lambda: os.close(os.open(os.devnull, os.O_RDONLY))).opened == 0


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
