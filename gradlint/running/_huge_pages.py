"""Makes a process cheap to fork: its memory is moved into pages of two megabytes (Linux 6.1).

To fork, the kernel copies an entry for every page of 4 KiB, and to end the fork it gives up every
one. A server that has imported torch and its compiler has 60,000 of them, which was 20 ms of
processor time for each process; with large pages it is 5 ms.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Iterator
from contextlib import suppress

#: Bytes of a large page, where pages are 4 KiB. Other sizes are refused by the kernel.
_LARGE = 2 << 20

_MADV_COLLAPSE = 25  # asm-generic/mman-common.h

#: Lines of /proc/self/maps (proc(5)): memory that is private, may be written, and is of no file.
_ANONYMOUS = re.compile(r"([0-9a-f]+)-([0-9a-f]+) rw-p [0-9a-f]+ 00:00 0\s*(?:\[heap\])?\s*$")


def collapse() -> None:
    """Move what this process holds into large pages, as far as the kernel does so. Its content and
    its addresses stay."""
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for first, end in list(_ranges()):
            library.madvise(ctypes.c_void_p(first), ctypes.c_size_t(end - first), _MADV_COLLAPSE)


def _ranges() -> Iterator[tuple[int, int]]:
    """Where whole large pages of anonymous memory lie: first address, and that after the last."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            found = _ANONYMOUS.match(line)
            if found is None:
                continue
            first = -(-int(found[1], 16) // _LARGE) * _LARGE
            end = int(found[2], 16) // _LARGE * _LARGE
            if first < end:
                yield first, end
