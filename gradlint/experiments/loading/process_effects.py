"""What a call of the op does to the process around it: seen, put back, and said in words."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from gradlint.trace.global_state import preserved_state
from gradlint.trace.originals import watched_functions

#: More than this printed by one call is a flood: a progress line is fine, a dump is not.
FLOOD_BYTES = 2**20

#: Seconds that output still on its way is waited for.
LONGEST_WAIT_S = 2.0

_PIECE = 2**16

_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_parent=_count_fork)


@dataclass
class Effects:
    """Side effects seen: ``texts`` in words, ``flooded`` whether a standard stream was flooded,
    ``opened`` file descriptors more than before."""

    texts: list[str] = field(default_factory=list)
    flooded: bool = False
    opened: int = 0


@contextmanager
def observed_effects(seed: int) -> Iterator[Effects]:
    """Watch the body for changes to the process, and put back what can be put back.

    Args:
        seed: what torch's generator was seeded with inside the body; another one means that the
            op seeds it itself.
    """
    effects = Effects()
    threads, forks, processes, descriptors = (
        running_threads(),
        _forks,
        running_children(),
        open_descriptors(),
    )
    with (
        _counted_output() as printed,
        watched_functions() as replaced,
        preserved_state() as changes,
    ):
        try:
            yield effects
        finally:
            reseeded = torch.default_generator.initial_seed() != seed
    effects.opened = open_descriptors() - descriptors
    effects.texts += changes.texts
    effects.texts += [f"{name} is replaced" for name in replaced]
    if reseeded:
        effects.texts.append("torch's random generator is seeded")
    started = running_threads() - threads
    if started > 0:
        effects.texts.append(f"{started} thread{'s' * (started > 1)} left running")
    if _forks > forks:
        effects.texts.append("os.fork is called")
    if running_children() - processes:
        effects.texts.append("a process left running")
    if printed.count > FLOOD_BYTES:
        effects.flooded = True
        effects.texts.append(f"{printed.count / 1e6:,.0f} MB printed in one call")


def open_descriptors() -> int:
    """How many file descriptors this process has open (0 where the system does not list them)."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            return len(os.listdir(folder))
    return 0


def running_threads() -> int:
    """Threads that run, without those here, which a busy machine may leave no time to end."""
    return sum(not isinstance(thread, _Drain) for thread in threading.enumerate())


def running_children() -> set[int]:
    """Process ids of this process's children that are still running (Linux; else empty)."""
    found: set[int] = set()
    for listing in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError, ValueError):
            found |= {int(pid) for pid in listing.read_text().split()}
    return {pid for pid in found if not _is_zombie(pid)}


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:  # gone meanwhile
        return True


def silence() -> None:
    """Send whatever is printed from now on to nowhere."""
    null = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(null, descriptor)
    os.close(null)


class _Counter:
    count = 0


class _Drain(threading.Thread):
    """Passes on what is printed."""


@contextmanager
def _counted_output() -> Iterator[_Counter]:
    """Count what the body writes to descriptors 1 and 2; the beginning is passed on."""
    counter = _Counter()
    saved: dict[int, int] = {}
    try:
        read, write = os.pipe()
        for descriptor in (1, 2):
            saved[descriptor] = os.dup(descriptor)
            os.dup2(write, descriptor)
        os.close(write)
    except OSError:  # a standard stream is closed: nothing to count
        for descriptor, copy in saved.items():
            os.dup2(copy, descriptor)
        yield counter
        return
    drain = _Drain(target=_drain, args=(read, saved[1], counter), daemon=True)
    drain.start()
    try:
        yield counter
    finally:
        _flush()
        for descriptor, copy in saved.items():
            os.dup2(copy, descriptor)
        # A process left running may hold the other end open: wait for what is there, not for it.
        drain.join(timeout=LONGEST_WAIT_S)
        for copy in saved.values():
            os.close(copy)


def _drain(read: int, forward: int, counter: _Counter) -> None:
    with suppress(OSError):
        while piece := os.read(read, _PIECE):
            if counter.count < FLOOD_BYTES:
                os.write(forward, piece)
            counter.count += len(piece)
    with suppress(OSError):
        os.close(read)


def _flush() -> None:
    stream: Any
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
