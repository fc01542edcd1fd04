"""The kernels as nvcc sees them, with many threads a block, compiled for the CPU.

In ``emulation/`` is what takes the place of CUDA: the threads of a block run one at a time, in an
order that is chosen, and wait for one another as those of a GPU do.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from gradlint.native import _tools
from gradlint.native._files import locked
from gradlint.native.reference import recipe
from gradlint.native.roots import kernels_root
from tests.kernels.support.linked import compiled, linked

EMULATION = Path(__file__).parents[1] / "emulation"

#: What is linked with every kernel.
DEVICE = tuple(
    EMULATION / f"{name}.cpp"
    for name in ("block_run", "fiber", "launch", "order", "races", "shared_memory")
)

#: Orders of the threads of a block: kind and seed (see emulation/launch.h).
ORDERS = ((0, 0), (1, 0), (2, 6))

#: Where a thread waits is told by its stack: calls must leave their frames there, and a barrier
#: must be one instruction. What is not aligned as a GPU demands is an illegal instruction.
FLAGS = (
    *("-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-fno-thread-jumps"),
    *("-fsanitize=alignment", "-fsanitize-undefined-trap-on-error", "-U_FORTIFY_SOURCE"),
    *(f'-DGRADLINT_DEVICE="{EMULATION / "device.h"}"', "-DGRADLINT_DEVICE_CODE"),
)

#: Each access to memory is told of, so that races are found (see emulation/races.h).
WATCHED = ("-fsanitize=thread",)


def emulated_library(folder: Path) -> Path:
    """The library of reference operators with emulated kernels, made in ``folder``."""
    right = recipe(("cpu",))
    assert right.tree is not None
    sources = [right.tree / name for name in right.host_sources]
    kernels = compiled([*sources, *DEVICE], [*FLAGS, f"-I{right.tree}"], folder)
    return linked(kernels, right, folder / "emulated.so")


def device_objects(folder: Path) -> list[Path]:
    """What is linked with any emulated kernel, made in ``folder``."""
    return compiled(DEVICE, [*FLAGS, f"-I{kernels_root()}"], folder)


def program(
    sources: Sequence[Path], flags: Sequence[str], device: list[Path], folder: Path
) -> Path:
    """A program of ``sources``, named and made in ``folder``."""
    made = compiled(sources, [*FLAGS, *flags, f"-I{EMULATION}"], folder)
    path = folder / sources[0].stem
    # What device and sources both have is taken from the former, which is never watched.
    subprocess.run([_tools.compiler().path, "-o", path, *device, *made], check=True)
    return path


def outcomes(path: Path, trial: str) -> list[str]:
    """What becomes of a program's trial in each order of the threads."""
    found = []
    for kind, seed in ORDERS:
        command = [path, trial, str(kind), str(seed)]
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
        found.append(done.stdout.strip() or f"status {done.returncode}")
    return found


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder of this session in which one of its processes has called ``make(folder)``."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # of all workers
    folder = base / name
    folder.mkdir(exist_ok=True)
    with locked(folder / "lock", lambda: None):
        if not (folder / "made").is_file():
            make(folder)
            (folder / "made").touch()
    return folder
