"""All calls of the reference operators with emulated kernels, in several orders of their threads.

As a script: those of all families, each in a process of its own that is forked from this one, which
has imported torch and called nothing.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import subprocess
import sys
from pathlib import Path

import torch
from torch import Tensor

from tests.kernels.support.emulated_cases import DTYPES, FAMILIES, WIDTHS, Results, results
from tests.kernels.support.emulated_library import ORDERS, emulated_library

ROOT = Path(__file__).parents[3]

#: Multiprocessors of the device and orders of the threads: an H200's, and so few that a block has
#: many rows.
RUNS = {132: ORDERS, 1: ORDERS[-1:]}


def run_all(folder: Path) -> None:
    """Make a library in ``folder``, and for each family what :func:`run` says."""
    library = emulated_library(folder)
    subprocess.run([sys.executable, "-m", __name__, library, folder], check=True, cwd=ROOT)


def run_families(library: str, folder: str) -> None:
    """:func:`run` for each family, all at once."""
    context = multiprocessing.get_context("fork")
    processes = [
        context.Process(target=run, args=(library, family, f"{folder}/{family}.pt"), name=family)
        for family in FAMILIES
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    ends = {process.name: process.exitcode for process in processes}
    assert ends == dict.fromkeys(FAMILIES, 0)


def run(library: str, family: str, out: str) -> None:
    """Save the results by the number of multiprocessors, the calls whose results are others in
    another order of the threads, and how often each kernel was launched."""
    torch.ops.load_library(library)
    device = ctypes.CDLL(library)
    by_processors: dict[int, Results] = {}
    unlike: list[str] = []
    for processors, orders in RUNS.items():
        device.emulation_processors(processors)
        found = []
        for kind, seed in orders:
            device.emulation_order(kind, ctypes.c_uint64(seed))
            first = not by_processors and not found
            found.append(results(family, DTYPES if first else WIDTHS))
        by_processors[processors] = found[0]
        for other in found[1:]:
            unlike += [name for name in other if not _same(found[0][name], other[name])]
    torch.save((by_processors, sorted(set(unlike)), _launches(device)), out)


def _same(some: list[Tensor], others: list[Tensor]) -> bool:
    """Whether all bits are the same."""
    return all(
        torch.equal(a.reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8))
        for a, b in zip(some, others, strict=True)
        if a.numel()
    )


def _launches(device: ctypes.CDLL) -> dict[str, int]:
    device.emulation_kernels.restype = ctypes.c_char_p
    lines = device.emulation_kernels().decode().splitlines()
    return {line.split(maxsplit=5)[5]: int(line.split()[0]) for line in lines}


if __name__ == "__main__":
    run_families(*sys.argv[1:])
