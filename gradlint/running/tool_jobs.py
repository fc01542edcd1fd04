"""Jobs about this machine and gradlint's own operators: no code of the user's is loaded.

They are apart from ``gradlint.running.jobs`` so that ``gradlint kernels build`` need not wait for
the rules to be imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from gradlint.base.errors import GradlintError, NotHere
from gradlint.model.events import Emit
from gradlint.native.bench import bench
from gradlint.native.progress import reporting
from gradlint.native.reference import build_reference
from gradlint.running.events import Building, Result, Unavailable, Usage
from gradlint.running.job import BenchWork, BuildWork, CallWork, DevicesWork, Work


def run(work: Work[Any], send: Emit) -> None:
    """Do ``work`` and send what came of it."""
    with mistakes_sent(send):
        send(Result(_done(work)))


def _done(work: Work[Any]) -> Any:
    match work:
        case DevicesWork():
            return {"cpu": True, "cuda": torch.cuda.is_available()}
        case BuildWork(devices, force):
            return str(build_reference(devices, force=force))
        case BenchWork(device, dtype, elements, matrix, names):
            return bench(device, dtype, elements, matrix, names)
        case CallWork(function, arguments):
            make_importable()
            return function(*arguments)
    raise TypeError(f"no job for {type(work).__name__}")


@contextmanager
def mistakes_sent(send: Emit) -> Iterator[None]:
    """Send what the user can mend, and how far builds are, in place of raising."""
    try:
        # What is said while something is compiled also shows that the worker does not hang.
        with reporting(lambda progress: send(Building(progress))):
            yield
    except NotHere as error:
        send(Unavailable(str(error)))
    except GradlintError as error:
        send(Usage(type(error).__name__, error.message, error.place, error.hint))


def make_importable() -> None:
    """Let modules of the working directory be imported, as Python does for a script there."""
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
