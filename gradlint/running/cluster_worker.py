"""What the worker of a Dask cluster does for gradlint.

It runs none of the operator's code itself: it hands an item to a runner, a process of its own.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import socket
from contextlib import suppress
from typing import Any

from gradlint.base.digests import gradlint_digest
from gradlint.base.scratch import scratch_folder
from gradlint.running.items import Mistake, Result, encoded
from gradlint.running.runners import check_item
from gradlint.running.shipping import digests, unpacked

#: The option that mistakes are about, and the resource of a worker that has a GPU.
PLACE, GPU = "--cluster", "GPU"


def description() -> dict[str, str]:
    """What must be the same here and there."""
    found = {"Python": ".".join(platform.python_version_tuple()[:2]), "torch": "none"}
    with suppress(importlib.metadata.PackageNotFoundError):
        found["torch"] = importlib.metadata.version("torch")
    found["gradlint"] = "unknown"
    with suppress(importlib.metadata.PackageNotFoundError):
        found["gradlint"] = importlib.metadata.version("gradlint")
    found["files of gradlint"] = gradlint_digest()[:12]
    return found


def looked_at(paths: list[str], folder: str, dask_worker: Any) -> dict[str, Any]:
    """What a worker has: versions, files, resources. Dask gives the worker under that name."""
    return {
        "versions": description(),
        "files": digests(paths),
        "folder": os.path.isdir(folder),
        "gpus": dask_worker.state.total_resources.get(GPU, 0.0),
        "host": socket.gethostname(),
    }


def work(
    data: bytes,
    folder: str,
    versions: dict[str, str],
    sources: tuple[bytes, str, str] | None,
    files: dict[str, str],
    key: str,
) -> bytes:
    """Do an item in the runner of this worker.

    Args:
        data: the item, encoded.
        folder: the working directory; "" for a new one.
        versions: what this worker must have: it may have come after the others were looked at.
        sources: what ``gradlint.running.shipping.unpacked`` takes; None where the folder is seen
            from here.
        files: what must be there where it is: path → hash.
        key: of this task. The item ends if the one who asked has gone.
    """
    differ = differences(versions, description())
    other = [path for path, hash in digests(files).items() if hash != files[path]]
    if other and not differ:
        differ = f"{other[0]} is another file there, or none"
    if differ:
        told = f"the worker on {socket.gethostname()} differs from this process: {differ}"
        return _refused(told)
    try:
        folder = unpacked(*sources) if sources is not None else folder or scratch_folder()
    except OSError as error:
        why = error.strerror or str(error)
        return _refused(f"the worker on {socket.gethostname()} can't write the sources: {why}")
    state = _worker().state

    def wanted() -> bool:
        task = state.tasks.get(key)
        return task is not None and task.state != "cancelled"

    return check_item(data, folder, state.nthreads, wanted)


def _refused(told: str) -> bytes:
    return encoded(Result(socket.gethostname(), usage=[Mistake("GradlintError", told, PLACE)]))


def same(value: Any) -> Any:
    """``value``: a task that Dask makes anew where the worker that held it is lost."""
    return value


def _worker() -> Any:
    return importlib.import_module("distributed").get_worker()


def differences(ours: dict[str, str], theirs: dict[str, str]) -> str:
    """``torch 2.6.0 instead of 2.7.0``; "" where nothing differs."""
    return ", ".join(
        f"{name} {theirs.get(name, 'none')} instead of {value}"
        for name, value in ours.items()
        if theirs.get(name) != value
    )
