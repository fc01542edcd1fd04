"""Workers of pytest-xdist share the GPUs: worker n uses GPU n, counted round."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import pytest

#: The environment variable by which CUDA is told which GPUs a program may see.
_VISIBLE = "CUDA_VISIBLE_DEVICES"

#: Seconds in which nvidia-smi must answer. Heuristic: it takes one or two where the driver has to
#: be loaded first.
_SECONDS = 20


def worker_number(config: pytest.Config) -> int | None:
    """The number of this worker of pytest-xdist; None in a run without."""
    worker: str = getattr(config, "workerinput", {}).get("workerid", "")
    digits = worker.removeprefix("gw")
    return int(digits) if digits.isdigit() else None


def gpu_of(number: int, visible: Sequence[str]) -> str | None:
    """The one of the ``visible`` GPUs that the worker ``number`` uses; None if there is none."""
    return visible[number % len(visible)] if visible else None


@contextmanager
def on_own_gpu(config: pytest.Config, devices: Sequence[str]) -> Iterator[None]:
    """In the body, processes that are started see one GPU alone, that of this worker, if
    ``devices`` asks for CUDA and this is a worker of pytest-xdist."""
    number = worker_number(config)
    gpu = gpu_of(number, visible_gpus()) if number is not None and "cuda" in devices else None
    if gpu is None:
        yield
        return
    before = os.environ.get(_VISIBLE)
    os.environ[_VISIBLE] = gpu
    try:
        yield
    finally:
        if before is None:
            del os.environ[_VISIBLE]
        else:
            os.environ[_VISIBLE] = before


@cache
def visible_gpus() -> tuple[str, ...]:
    """The GPUs that this process may use, by number or identifier, found without torch."""
    if _VISIBLE in os.environ:
        return tuple(part.strip() for part in os.environ[_VISIBLE].split(",") if part.strip())
    try:
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(done.stdout.split())
