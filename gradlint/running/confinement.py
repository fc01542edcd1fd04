"""Confinement of untrusted code by the operating system: whether, how, and with what environment.

What every confinement here promises: no network, no files written but in a scratch folder, no
signals to processes outside and no look into them. Where that can't be had, nothing runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import get_args

from gradlint.base.errors import GradlintError
from gradlint.base.scratch import scratch_folder
from gradlint.model.settings import Settings
from gradlint.running.environment import public
from gradlint.running.job import Confinement, Job, Means

if sys.platform == "linux":
    import resource

    from gradlint.running import _landlock, _namespaces

#: Seconds in which a program that tries a confinement must be done (heuristic: Python's start on a
#: busy machine).
_TRIAL_S = 60.0

#: Variables that name folders for what programs keep → folder below the scratch folder.
_FOLDERS = {
    "HOME": "home",
    "TMPDIR": "tmp",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TORCH_EXTENSIONS_DIR": "extensions",
    "TORCH_HOME": "torch",
    "TRITON_CACHE_DIR": "triton",
    "TRITON_HOME": "triton",
    "XDG_CACHE_HOME": "cache",
}

#: Open files of one process, and processes and threads together (heuristic: compiling takes a
#: process for each core, with a few threads and some tens of files).
_MOST_FILES = 1024
_MOST_PROCESSES = 512

_HINT = (
    "allow user namespaces (in a container: --security-opt seccomp=unconfined; on Ubuntu: sysctl "
    "kernel.apparmor_restrict_unprivileged_userns=0), or use Linux 6.2 or later with Landlock; "
    "else run gradlint in a virtual machine that can be thrown away, without --untrusted"
)


@lru_cache(maxsize=1)
def available() -> Confinement:
    """The strongest confinement that works here, found by trying.

    Raises:
        GradlintError: none does; the message says what is missing.
    """
    if sys.platform != "linux":
        raise _refusal([f"it needs Linux, this is {sys.platform}"])
    failures = []
    for means in get_args(Means):
        confinement = _planned(means)
        failure = _tried(confinement)
        if failure is None:
            return confinement
        failures.append(f"{means}: {failure}")
    raise _refusal(failures)


def applied(job: Job) -> Job:
    """``job`` with its confinement, if the settings of its work ask for one.

    Raises:
        GradlintError: they do, and none works here.
    """
    settings = getattr(job.work, "settings", None)
    if settings is None or not settings.untrusted:
        return job
    environment = public(job.environment)
    return replace(job, confinement=confined(settings), environment=environment)


def confined(settings: Settings) -> Confinement:
    """The confinement of the workers of a run.

    Raises:
        GradlintError: none works here, or not with these settings.
    """
    if settings.sanitizer is not None:
        raise GradlintError(
            "code that compute-sanitizer watches can't be confined",
            place="--untrusted",
            hint="leave out one of --untrusted and --sanitizer",
        )
    cuda = any(device != "cpu" for device in settings.devices)
    return replace(available(), cuda=cuda)


def enter(confinement: Confinement, keep: Iterable[int]) -> dict[str, str]:
    """Confine this process for good. In namespaces, another process returns than called.

    Args:
        confinement: as found by :func:`available`.
        keep: descriptors that stay open, besides pipes and the first three.

    Returns:
        Variables that say where there is room for files.

    Raises:
        OSError: it can't be had; no code of the user's may run in this process then.
    """
    if sys.platform != "linux":
        raise OSError("untrusted code can be confined on Linux only")
    _namespaces.close_files(keep)
    if confinement.means == "namespaces":
        _namespaces.enter(cuda=confinement.cuda)
        scratch = confinement.scratch
        _limit(resource.RLIMIT_NPROC, _MOST_PROCESSES)
    else:
        scratch = tempfile.mkdtemp(dir=confinement.scratch)
        _landlock.enter(scratch, cuda=confinement.cuda)
    _limit(resource.RLIMIT_NOFILE, _MOST_FILES)
    _limit(resource.RLIMIT_FSIZE, _namespaces.SCRATCH_BYTES)
    folders = {name: os.path.join(scratch, folder) for name, folder in _FOLDERS.items()}
    for folder in folders.values():
        os.makedirs(folder, exist_ok=True)
    tempfile.tempdir = None  # found again, by TMPDIR
    return folders


def failed(error: BaseException) -> GradlintError:
    """What a worker says that could not be confined although trying had worked."""
    return _refusal([str(error)])


def _planned(means: Means) -> Confinement:
    if means == "namespaces":
        return Confinement(means, _namespaces.SCRATCH)
    return Confinement(means, tempfile.mkdtemp(dir=scratch_folder()))


def _tried(confinement: Confinement) -> str | None:
    """Why ``confinement`` does not work here; None if it does."""
    with tempfile.NamedTemporaryFile(dir=scratch_folder()) as witness:
        arguments = (confinement.means, confinement.scratch, os.getpid(), witness.name)
        # Python searches the same folders as here: the current one might hold other modules.
        code = (
            f"import sys; sys.path[:] = {[path for path in sys.path if path]!r}; "
            f"from gradlint.running.confinement_trial import main; main(*{arguments!r})"
        )
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-c", code],
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=_TRIAL_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    if done.returncode == 0 and done.stdout.strip() == b"confined":
        return None
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"the trial ended with status {done.returncode}"


def _refusal(reasons: list[str]) -> GradlintError:
    return GradlintError(
        f"untrusted code can't be confined here: {'; '.join(reasons)}",
        place="--untrusted",
        hint=_HINT,
    )


def _limit(which: int, most: int) -> None:
    with suppress(ValueError, OSError):
        hard = resource.getrlimit(which)[1]
        limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (limit, limit))
