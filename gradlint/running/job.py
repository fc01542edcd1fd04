"""What a worker is told to do, and what it may take for it.

Each kind of work is a type; ``gradlint.running.jobs``, ``gradlint.running.rare_jobs`` and
``gradlint.running.tool_jobs`` do it. They import torch, which the process that hands out the work
must not.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from gradlint.model.events import Confirmable
from gradlint.model.op import OpRef
from gradlint.model.report import Confirmation, TargetReport
from gradlint.model.settings import Settings
from gradlint.model.sweep import SweepTarget
from gradlint.reproduction.wanted import Wanted

R = TypeVar("R")

#: Runs the rules: called as ``gradlint.checking.examine.examine`` is.
Examine = Callable[..., None]


class Work(Generic[R]):
    """One kind of work; ``R`` is what comes of it."""


@dataclass(frozen=True)
class CheckWork(Work[TargetReport]):
    """Load ``ref``, find its inputs, and run the rules that are not ``done``.

    Args:
        done: pairs of code and sample label.
        examine: what runs the rules, for tests of the runner; None for gradlint's own.
        listing: whether to say only what would run, and on which samples.
        elsewhere: codes of rules that another worker runs.
        only: codes of the rules to run, if this is that other worker: those that compile.
    """

    ref: OpRef
    settings: Settings
    done: frozenset[tuple[str, str]] = frozenset()
    examine: Examine | None = None
    listing: bool = False
    elsewhere: frozenset[str] = frozenset()
    only: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ConfirmWork(Work[Confirmation]):
    """Repeat a ``call`` of ``ref`` in processes without gradlint, and judge it here.

    Args:
        memory_mb: as of :class:`Job`, for each of them.
        folder: where folders for it may be made; None for that of temporary files.
        run: names the run that this is part of: what a process has imported may serve all of it.
            "" where sources may change meanwhile.
    """

    ref: OpRef
    settings: Settings
    call: Confirmable
    memory_mb: int | None = None
    folder: str | None = None
    run: str = ""


@dataclass(frozen=True)
class SeveralWork(Work[Any]):
    """Do all of ``works``, one after another in one process: those that check operators of plain
    files (``gradlint.targets.plain_files``), for as long as none leaves anything behind that the
    next one might see; or those that confirm."""

    works: tuple[CheckWork | ConfirmWork, ...]


@dataclass(frozen=True)
class ExpandWork(Work[list[OpRef]]):
    """Import the module of ``ref`` and list its operators."""

    ref: OpRef
    settings: Settings


@dataclass(frozen=True)
class SweepWork(Work[list[SweepTarget]]):
    """Sweep every input of ``ref`` on one sample."""

    ref: OpRef
    settings: Settings
    steps: int | None = None
    sample: str | None = None


@dataclass(frozen=True)
class StarterWork(Work[str]):
    """Write a specification that says what was inferred for ``ref``, for a file in ``folder``."""

    ref: OpRef
    settings: Settings
    folder: str = "."


@dataclass(frozen=True)
class LearnWork(Work[dict[str, Any]]):
    """Write a specification of ``ref`` from its calls in ``files``, for a file in ``folder``.

    Args:
        providers: modules of which one registers the operator, the likeliest first.
        header: comments for its first lines.
        shrink: whether samples are made smaller.
    """

    ref: OpRef
    settings: Settings
    files: tuple[str, ...]
    folder: str
    header: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    shrink: bool = True


@dataclass(frozen=True)
class ReproduceWork(Work[dict[str, Any]]):
    """Write the script that shows a finding on ``ref``; see ``gradlint.reproduction.make``."""

    ref: OpRef
    settings: Settings
    wanted: Wanted


@dataclass(frozen=True)
class AuditWork(Work[dict[str, Any]]):
    """Audit the class ``ref``, which overrides torch's functions."""

    ref: OpRef
    settings: Settings


@dataclass(frozen=True)
class DevicesWork(Work[dict[str, bool]]):
    """Find which kinds of device work here."""


@dataclass(frozen=True)
class BuildWork(Work[str]):
    """Build the reference operators, and say where they are."""

    devices: tuple[str, ...] | None
    force: bool = False


@dataclass(frozen=True)
class BenchWork(Work[dict[str, Any]]):
    """Time the reference operators; see ``gradlint.native.bench.bench``."""

    device: str | None
    dtype: str
    elements: int | None
    matrix: int | None
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class CallWork(Work[Any]):
    """Call a function, which is pickled by reference; its result is plain data."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


#: By what untrusted code is confined, the strongest first; each has a filter of system calls too.
Means = Literal["namespaces", "landlock"]


@dataclass(frozen=True)
class Confinement:
    """How the operating system confines a worker.

    Args:
        means: see :data:`Means`.
        scratch: the folder in which it may write.
        cuda: whether it may use the devices of NVIDIA's driver.
    """

    means: Means
    scratch: str
    cuda: bool = False


@dataclass(frozen=True)
class Job:
    """One piece of work for one worker.

    Args:
        work: what to do.
        memory_mb: MiB it may allocate beyond what torch holds; None for no limit.
        environment: variables of the caller, which may have changed since the server started.
        interpreter: a program that starts Python with the arguments it is given, under a tool that
            watches it. Such a worker is no fork of the server: it starts afresh, adds
            ``environment`` to what the tool left it, and ends as a program does, so that the tool
            can end too. None for a worker of the usual kind.
        confinement: what to enter before the user's code is imported; None to run as the user does.
    """

    work: Work[Any]
    memory_mb: int | None = None
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    interpreter: str | None = None
    confinement: Confinement | None = None

    @property
    def runs_users_code(self) -> bool:
        """Whether code of the user's may run in the worker, or in processes that it starts. What
        confirms asks others, who end by themselves, unless it is confined."""
        works = self.work.works if isinstance(self.work, SeveralWork) else (self.work,)
        confirms = all(isinstance(work, ConfirmWork) for work in works)
        return not confirms or self.confinement is not None
