"""How much memory one worker may take."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

#: Most that a worker gets when nothing was asked for, in MiB. Heuristic: filling it takes a few
#: seconds, so that an unbounded allocation ends in an error and not in a time-out.
MOST_MB = 8192
LEAST_MB = 512


def allowance(asked_mb: int | None, jobs: int, devices: tuple[str, ...]) -> int | None:
    """MiB that one of ``jobs`` workers may allocate beyond what torch holds; None: no limit.

    Without a wish it is half of what is free, shared by the workers. A worker that uses CUDA is
    not limited unless asked for: the driver reserves address space far beyond what it uses.
    """
    if asked_mb is not None:
        return asked_mb
    if any(device != "cpu" for device in devices):
        return None
    free = free_mb()
    if free is None:
        return None
    return max(LEAST_MB, min(MOST_MB, free // 2 // max(1, jobs)))


def free_mb() -> int | None:
    """Memory that this process may still take: the machine's, or its control group's if less."""
    found: list[int] = []
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) // 1024)
    for limit, usage in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        (
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    ):
        with suppress(OSError, ValueError):
            left = int(Path(limit).read_text()) - int(Path(usage).read_text())
            left += _reclaimable(Path(usage).parent / "memory.stat")
            found.append(max(0, left) // 2**20)
    return min(found) if found else None


def _reclaimable(statistics: Path) -> int:
    # The file cache counts as used, but is given back on demand.
    with suppress(OSError, ValueError, IndexError):
        for line in statistics.read_text().splitlines():
            if line.startswith(("inactive_file ", "total_inactive_file ")):
                return int(line.split()[1])
    return 0
