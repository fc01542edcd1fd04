"""GPUs for which kernels are judged without running: how fast they move memory and compute."""

from __future__ import annotations

from dataclasses import dataclass

#: Share of the bandwidth of a data sheet that a copy reaches (heuristic: 85 to 93 % are usual; it
#: is what a kernel is compared with, so that a lower one would make every prediction better).
COPY_SHARE = 0.9

#: Threads whose instructions a multiprocessor starts in one clock: four schedulers, a warp each.
ISSUED = 128

#: 32-bit registers of a multiprocessor ("Technical Specifications per Compute Capability" in the
#: CUDA C++ Programming Guide).
REGISTERS = 65536

#: Most blocks of a multiprocessor at once, from the same table, for all of these.
MOST_BLOCKS = 24


@dataclass(frozen=True)
class Rates:
    """Results that a multiprocessor makes in one clock, by what makes them.

    From "Throughput of Native Arithmetic Instructions" in the CUDA C++ Programming Guide; loads and
    stores from the white papers of the architectures (32 units each).

    Args:
        of: by the unit. fma: additions and products of float32; alu: integers, comparisons, logic,
            conversions to 16 bits; xu: exponentials, inverses, roots; fp64: additions and products
            of float64; convert: conversions from and to types of 64 bits; lsu: accesses of up to 4
            bytes, and exchanges within a warp.
        threads: most of a multiprocessor.
    """

    of: dict[str, int]
    threads: int


_CONSUMER = Rates({"fma": 128, "alu": 64, "xu": 16, "fp64": 2, "convert": 2, "lsu": 32}, 1536)

RATES = {
    "sm_80": Rates({"fma": 64, "alu": 64, "xu": 16, "fp64": 32, "convert": 16, "lsu": 32}, 2048),
    "sm_89": _CONSUMER,
    "sm_90": Rates({"fma": 128, "alu": 64, "xu": 16, "fp64": 64, "convert": 16, "lsu": 32}, 2048),
}


@dataclass(frozen=True)
class Gpu:
    """One kind of GPU.

    Args:
        name: as it is called.
        architecture: such as sm_90.
        processors: multiprocessors.
        clock: highest, in Hz.
        bandwidth: of its memory, in bytes a second.
        source: of these numbers.
    """

    name: str
    architecture: str
    processors: int
    clock: float
    bandwidth: float
    source: str

    @property
    def rates(self) -> Rates:
        """What a multiprocessor makes in one clock."""
        return RATES[self.architecture]

    @property
    def copied(self) -> float:
        """Bytes a second that a copy moves, read and written."""
        return COPY_SHARE * self.bandwidth

    def slots(self, size: float) -> float:
        """Instructions of a thread for which there is time while ``size`` bytes are copied."""
        return ISSUED * self.processors * self.clock * size / self.copied


#: The architecture with whose GPUs kernels must reach their goals: those of an H200. Older ones
#: have less time for an element, and more instructions for one in bfloat16; their shares are shown.
GOALS_ON = "sm_90"

#: Largest first. The first of an architecture is the one that the gate judges for.
GPUS = (
    Gpu("H200", "sm_90", 132, 1.98e9, 4.8e12, "NVIDIA H200 data sheet (SXM)"),
    Gpu("H100", "sm_90", 132, 1.98e9, 3.35e12, "NVIDIA H100 data sheet (SXM5, 80 GB)"),
    Gpu("A100", "sm_80", 108, 1.41e9, 2.039e12, "NVIDIA A100 data sheet (SXM4, 80 GB)"),
    Gpu("L40S", "sm_89", 142, 2.52e9, 0.864e12, "NVIDIA L40S data sheet"),
    Gpu("L4", "sm_89", 58, 2.04e9, 0.3e12, "NVIDIA L4 data sheet"),
)


def gpus_for(architecture: str, compiled: tuple[str, ...]) -> tuple[Gpu, ...]:
    """The GPUs whose kernels are judged by the code for ``architecture``, of all ``compiled``.

    Machine code of a major version runs on its later minor versions: sm_80 stands in for sm_89
    where that was not compiled for.
    """
    return tuple(
        gpu
        for gpu in GPUS
        if gpu.architecture == architecture
        or (gpu.architecture not in compiled and gpu.architecture[:-1] == architecture[:-1])
    )
