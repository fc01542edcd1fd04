"""Faulty twins that need many threads, or a GPU's memory, are found on the emulation of CUDA."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradlint.native.roots import kernels_root
from tests.kernels.support.emulated_library import (
    EMULATION,
    WATCHED,
    device_objects,
    made_once,
    outcomes,
    program,
)
from tests.kernels.support.faulty import FOLDER, TWINS

#: What is said of a twin in each order of the threads and blocks (emulation/twins.cpp).
FOUND = {
    # The last row wins where its block is the last.
    "atomic_winner": ("right", "element 0 is", "element 0 is"),
    "divergent_barrier": ("waits at a barrier for thread",) * 3,
    "missing_sync": ("a race: ",) * 3,
    "out_of_bounds": ("element 0 is nan",) * 3,
    "overflow": ("element 0 is 0.0",) * 3,
    "racing_reduction": ("a race: ",) * 3,
    "tail": ("element 0 is",) * 3,
    "unaligned": ("element 0 is nan",) * 3,
    "uninitialised": (" is nan, not 0.0",) * 3,
}

#: Why a twin can't show there.
ELSEWHERE = {
    "contiguous_grad": "the fault is in the bindings; it shows on the host",
    "half_accumulation": "one thread adds up a row; it shows on the host",
    "missing_guard": "the fault is in the bindings, which choose the GPU; it takes two",
    "stale_workspace": "the fault is in the bindings; it shows on the host",
    "wrong_stream": "the emulation has no streams: a launch has ended when the next begins",
}


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    device = made_once(tmp_path_factory, "emulated_device", device_objects)

    def make(folder: Path) -> None:
        sources = [EMULATION / "twins.cpp", FOLDER / "host.cpp"]
        flags = [*WATCHED, f"-I{kernels_root()}", f"-I{FOLDER}"]
        program(sources, flags, sorted(device.glob("*.o")), folder)

    return made_once(tmp_path_factory, "emulated_twins", make) / "twins"


def test_every_twin_is_accounted_for() -> None:
    assert sorted([*FOUND, *ELSEWHERE]) == [twin.name for twin in TWINS]


@pytest.mark.parametrize("name", FOUND)
def test_a_faulty_twin_is_found(name: str, twins: Path) -> None:
    for outcome, expected in zip(outcomes(twins, f"faulty {name}"), FOUND[name], strict=True):
        assert expected in outcome


@pytest.mark.parametrize("name", FOUND)
def test_a_mended_twin_is_right(name: str, twins: Path) -> None:
    assert outcomes(twins, f"mended {name}") == ["right"] * 3
