"""Global state is as it was after the body, and changes are told."""

from __future__ import annotations

import gc
import os
import random
import sys
import warnings
from pathlib import Path

import pytest
import torch

from gradlint.trace import global_state
from gradlint.trace.global_state import Needs, preserved_state


def test_everything_comes_back(tmp_path: Path) -> None:
    here = os.getcwd()
    filters = list(warnings.filters)
    threads = torch.get_num_threads()
    torch_state, python_state = torch.get_rng_state(), random.getstate()
    with preserved_state() as changes:
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        torch.autograd.set_detect_anomaly(True)
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.set_num_threads(threads + 3)
        torch.set_default_device("meta")
        torch.manual_seed(1)
        random.seed(1)
        os.chdir(tmp_path)
        os.environ["GRADLINT_TEST"] = "x"
        sys.path.insert(0, "/nowhere")
        warnings.simplefilter("error")
    assert torch.get_default_dtype() == torch.float32
    assert torch.is_grad_enabled()
    assert not torch.is_anomaly_enabled()
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.get_num_threads() == threads
    assert torch.empty(1).device.type == "cpu"
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert random.getstate() == python_state
    assert os.getcwd() == here
    assert "GRADLINT_TEST" not in os.environ
    assert "/nowhere" not in sys.path
    assert warnings.filters == filters
    assert "default dtype: torch.float32 → torch.float64" in changes.texts
    assert "environment variables: GRADLINT_TEST" in changes.texts
    assert any(text.startswith("working directory") for text in changes.texts)
    assert "warning filters changed" in changes.texts


def test_what_changes_how_others_compute_is_told() -> None:
    benchmark = torch.backends.cudnn.benchmark
    with preserved_state() as changes:
        torch.set_autocast_enabled("cpu", True)
        torch._C._set_cudnn_benchmark(not benchmark)  # torch.testing may have frozen the flag
        gc.disable()
    assert not torch.is_autocast_enabled("cpu")
    assert torch.backends.cudnn.benchmark is benchmark
    assert gc.isenabled()
    assert [text.split(":")[0] for text in changes.texts] == [
        "autocast",
        "cuDNN flags",
        "garbage collection",
    ]


def test_frozen_flags_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends, "__allow_nonbracketed_mutation_flag", False)
    benchmark = torch.backends.cudnn.benchmark
    with preserved_state() as changes, torch.backends.cudnn.flags(benchmark=benchmark):
        torch._C._set_cudnn_deterministic(True)
        torch._C._set_cudnn_benchmark(not benchmark)
    assert torch.backends.cudnn.benchmark is benchmark
    assert changes.texts == []
    with preserved_state() as changes:
        torch._C._set_cudnn_benchmark(not benchmark)
    assert torch.backends.cudnn.benchmark is benchmark
    assert [text.split(":")[0] for text in changes.texts] == ["cuDNN flags"]


def test_it_comes_back_after_an_exception() -> None:
    def body() -> None:
        with preserved_state():
            torch.set_default_dtype(torch.float64)
            raise KeyError

    with pytest.raises(KeyError):
        body()
    assert torch.get_default_dtype() == torch.float32


def test_nothing_changed_is_nothing_told() -> None:
    with preserved_state() as changes:
        torch.rand(3)
        random.random()
    assert changes.texts == []


def test_closed_descriptors_and_streams_come_back(tmp_path: Path) -> None:
    path = tmp_path / "out"
    saved = os.dup(1)
    stream = sys.stdout
    try:
        with path.open("w") as file:
            os.dup2(file.fileno(), 1)
            sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
            with preserved_state() as changes:
                sys.stdout.close()
                os.close(1)
            print("heard", flush=True)
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        sys.stdout = stream
    assert path.read_text() == "heard\n"
    assert changes.texts == ["descriptor 1 was closed or replaced", "sys.stdout was closed"]


def test_what_gradlint_needs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Settings and limits that make calls of gradlint's fail are named, others are not."""
    needs = Needs()
    torch.set_default_dtype(torch.float64)
    torch.set_default_dtype(torch.float32)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, object()])
    assert needs.changed(ValueError()) == []
    assert needs.changed(ImportError()) == ["sys.meta_path"]
    monkeypatch.chdir(tmp_path)
    assert needs.changed(ValueError()) == []
    assert needs.changed(FileNotFoundError()) == ["working directory"]
    with torch.device("meta"):
        assert needs.changed(ValueError()) == ["default device"]
    assert needs.changed(ValueError()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="limits are those of Unix")
def test_limits_may_be_raised_and_not_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"limit of open files": 1024.0}
    monkeypatch.setattr(global_state, "_limits", lambda: dict(limits))
    needs = Needs()
    limits["limit of open files"] = 4096.0
    assert needs.changed(OSError()) == []
    limits["limit of open files"] = 3.0
    assert needs.changed(OSError()) == ["limit of open files"]
