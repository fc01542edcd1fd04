"""The emulation of CUDA's threads finds what goes wrong between them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import pytest

from gradlint.native.roots import kernels_root
from tests.kernels.support.emulated_library import (
    EMULATION,
    ORDERS,
    WATCHED,
    device_objects,
    made_once,
    outcomes,
    program,
)


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = made_once(tmp_path_factory, "emulated_device", device_objects)
    return sorted(folder.glob("*.o"))


@pytest.fixture(scope="module")
def misuse(device: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("misuse")
    return program([EMULATION / "misuse.cpp"], [f"-I{kernels_root()}"], device, folder)


#: What is wrong, and what is said of it.
MISUSES = {
    "early end": "thread 0 waits at a barrier for thread 5, which has ended",
    "two barriers": "thread 0 waits at a barrier for thread 32, which waits at a barrier elsewhere",
    "fewer rounds": "thread 0 waits at a barrier for thread 40, which has ended",
    "half a warp": "thread 0 waits at an exchange of its warp for thread 16, which has ended",
    "barrier for an exchange": (
        "thread 0 waits at a barrier for thread 32, which waits at an exchange elsewhere"
    ),
    "not in the mask": "a lane exchanges that is not in its own mask",
    "from outside the mask": "a lane takes the value of one that is not in the mask",
    "beyond the memory": "shared memory was written out of bounds",
    "beyond an array": "shared memory was written out of bounds",
    "too much memory": "too much shared memory",
    "too large an array": "more shared memory than a block has",
    "too many threads": "too many threads, or none",
    "more threads than bounded": "more threads than the kernel is bounded to",
    "part of a warp": "a block of warps that are not whole",
}


@pytest.mark.parametrize("trial", MISUSES)
def test_misuse_is_said(trial: str, misuse: Path) -> None:
    for outcome in outcomes(misuse, trial):
        assert outcome.startswith("emulated CUDA: ")
        assert ": block 0: " in outcome
        assert outcome.endswith(MISUSES[trial])


def test_memory_that_was_not_written_is_not_a_number(misuse: Path) -> None:
    for outcome in outcomes(misuse, "unwritten memory"):
        assert outcome.endswith("nan, not 0.000000")


def test_threads_of_a_warp_do_not_wait_by_themselves(misuse: Path) -> None:
    assert outcomes(misuse, "warp") == ["right"] * 3
    assert all(text.startswith("element") for text in outcomes(misuse, "warp without waiting"))


def test_a_race_has_another_end_in_another_order(misuse: Path) -> None:
    ascending, descending, shuffled = map(float, outcomes(misuse, "race"))
    assert (ascending, descending) == (63.0, 0.0)
    assert 0.0 < shuffled < 63.0


#: Accesses (emulation/accesses.cpp), and what is said of them in each order of the threads.
RIGHT = ("right",) * 3
SINCE_THE_BARRIER = ("a race: it *s what thread * since the last barrier",) * 3
ACCESSES = {
    "elements of their own": RIGHT,
    "neighbouring bytes": RIGHT,
    "read after a barrier": RIGHT,
    "written after a barrier": RIGHT,
    "read by all": RIGHT,
    "shared memory of two blocks": RIGHT,
    "exchanged": RIGHT,
    "read before a barrier": SINCE_THE_BARRIER,
    "written before a barrier": SINCE_THE_BARRIER,
    "added to by all": (
        "thread 1: a race: it reads what thread 0 wrote since the last barrier",
        "thread 62: a race: it reads what thread 63 wrote since the last barrier",
        SINCE_THE_BARRIER[2],
    ),
    "written by two blocks": ("thread 0: a race: it writes what another block wrote",) * 3,
    "written once others have read": ("a race: it reads what another block wrote",) * 3,
    "part of another's": (
        "thread 1: a race: it writes what thread 0 wrote since the last barrier",
        "thread 0: a race: it writes what thread 1 wrote since the last barrier",
        SINCE_THE_BARRIER[2],
    ),
}


@pytest.fixture(scope="module")
def accesses(device: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    flags = [*WATCHED, f"-I{kernels_root()}"]
    return program([EMULATION / "accesses.cpp"], flags, device, tmp_path_factory.mktemp("accesses"))


@pytest.mark.parametrize("trial", ACCESSES)
def test_races_are_said(trial: str, accesses: Path) -> None:
    for outcome, end in zip(outcomes(accesses, trial), ACCESSES[trial], strict=True):
        assert fnmatch(outcome, end if end == "right" else f"emulated CUDA: *: {end}")


#: Parts of the kernels that threads of a block share work in, and the programs of ``emulation/``
#: that have trials of them.
PARTS = {
    "matmul": "products.cpp",
    "matmul in parts": "products.cpp",
    "team": "reductions.cpp",
    "block": "reductions.cpp",
    "map": "maps.cpp",
    "map of what is not aligned": "maps.cpp",
}


@dataclass(frozen=True)
class Fault:
    """A fault in a header of the kernels.

    Args:
        header: in ``kernels/common``.
        right, wrong: what is replaced, which is there once, and by what.
        part: that must not come out right in every order.
    """

    header: str
    right: str
    wrong: str
    part: str


WAIT = "    __syncthreads();\n"
WAIT_FIRST = "    __syncthreads();  // the values of an earlier reduction have been read\n"

FAULTS = {
    "panels are read before they are there": Fault(
        "matmul.h", "        block.sync();\n        multiply", "        multiply", "matmul"
    ),
    "panels are overwritten before they were read": Fault(
        "matmul.h", "        block.sync();  // the panels have been read\n", "", "matmul"
    ),
    "what is behind a row is multiplied too": Fault(
        "matmul.h",
        "const int64_t last = least(first + part_inner_, product_.inner);",
        "const int64_t last = first + part_inner_;",
        "matmul in parts",
    ),
    "sums of warps are read before they are there": Fault("team.h", WAIT, "", "team"),
    "sums of warps are overwritten before they were read": Fault("team.h", WAIT_FIRST, "", "team"),
    "some warps do not wait": Fault(
        "team.h", WAIT, f"    if (index == 0) {WAIT.strip()}\n", "team"
    ),
    "lanes take the value of another": Fault(
        "team.h", "values[k], distance)", "values[k], distance ^ 1)", "team"
    ),
    "a mask leaves out lanes": Fault("team.h", "0xffffffffu", "0x7fffffffu", "team"),
    "maxima of warps are read before they are there": Fault(
        "block.h", f"{WAIT}    value", "    value", "block"
    ),
    "maxima of warps are overwritten before they were read": Fault(
        "block.h", WAIT_FIRST, "", "block"
    ),
    "the last block goes on behind the end": Fault(
        "map.h", "i < last; i += block.threads", "i < first + chunk; i += block.threads", "map"
    ),
    "what is not aligned is read in packs": Fault(
        "operands.h",
        "if (strides[0] != 1 || !packed) return single;",
        "if (strides[0] != 1) return single;",
        "map of what is not aligned",
    ),
}


@pytest.mark.parametrize("source", sorted(set(PARTS.values())))
def test_parts_are_right(source: str, device: list[Path], tmp_path: Path) -> None:
    made = program([EMULATION / source], [f"-I{kernels_root()}"], device, tmp_path)
    parts = [part for part in PARTS if PARTS[part] == source]
    assert {part: outcomes(made, part) for part in parts} == {
        part: ["right"] * len(ORDERS) for part in parts
    }


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str, device: list[Path], tmp_path: Path) -> None:
    fault = FAULTS[name]
    tree = tmp_path / "kernels"
    shutil.copytree(kernels_root() / "common", tree / "common")
    header = tree / "common" / fault.header
    text = header.read_text(encoding="utf-8")
    assert text.count(fault.right) == 1, f"{fault.header}: {fault.right!r}"
    header.write_text(text.replace(fault.right, fault.wrong), encoding="utf-8")
    made = program([EMULATION / PARTS[fault.part]], [f"-I{tree}"], device, tmp_path)
    assert outcomes(made, fault.part) != ["right"] * len(ORDERS)
