"""What the fork server imports once for all workers.

Only imports: running an operator here would start threads that a fork does not inherit. The one
exception is an operator of gradlint's own, run where nothing starts a thread, if many operators are
going to be checked (``gradlint.checking.rehearsal``).
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType

from gradlint.base.scratch import remove_scratch
from gradlint.running import _compiler, _confine, _huge_pages, _keeper
from gradlint.running.server import FOLDER, LOADS, MANY, PARENT, SINGLE, SOURCES
from gradlint.trace.originals import at_the_start

#: Seconds in which the parent's end shows, and between two looks.
_NOTICE_SECONDS = 0.2
_PAUSE_SECONDS = 0.005
#: Forks once torch is there, and before anything of gradlint is that it need not have.
ZYGOTE = "gradlint.running._zygote"

#: Imported because it takes long; a module that is missing or broken is left to the worker, which
#: can report it.
MODULES = (
    "torch",
    "torch.autograd.forward_ad",
    "torch.autograd.gradcheck",
    "torch.func",
    "torch.fx.experimental.symbolic_shapes",
    "torch.library",
    "torch.testing",
    "torch.utils._device",
    "ctypes",
    "inspect",
    "numpy.random",
    "resource",
)

#: What forward-mode derivatives import by their first use, which few operators have.
FOR_SEVERAL = ("torch._decomp.decompositions_for_jvp",)

#: Packages of gradlint of which a worker may need any module.
PACKAGES = (
    "checking",
    "diagnosis",
    "experiments",
    "expressions",
    "inputs",
    "model",
    "numerics",
    "ops",
    "rules",
    "targets",
    "trace",
)

#: Modules of gradlint with a ``read_ahead``: what each of them makes of a file.
READING = (
    "targets.bytecode",
    "targets.nodes",
    "targets.calls",
    "targets.example_calls",
    "trace.coverage",
    "experiments.transforms.compiled",
)


def _names() -> Iterator[str]:
    load = os.environ.get(LOADS)
    if load == "torch":
        yield from ("torch", "gradlint.running.tool_jobs", "gradlint.running._worker")
        return
    yield from MODULES
    yield ZYGOTE
    for package in PACKAGES:
        yield from _modules_of(package)
    yield "gradlint.running.jobs"
    yield "gradlint.running._worker"
    # Last, since it may be known only by then that there is a single operator.
    if not _told(SINGLE):
        yield from _modules_of("native")
        yield from _modules_of("spec")
        yield from FOR_SEVERAL
        yield from _compiler.COMPILER if load == "tracing" else ()


def _modules_of(package: str) -> Iterator[str]:
    """``gradlint.<package>`` and all modules in it, but those that read settings."""
    name = f"gradlint.{package}"
    yield name
    path = getattr(sys.modules.get(name), "__path__", ())
    for module in pkgutil.walk_packages(path, f"{name}.", onerror=lambda _: None):
        if module.name != "gradlint.model.resolve":  # the parent did, and it imports pydantic
            yield module.name


def _serve() -> None:
    """Make this process a server: in a session of its own, so that signals to the group of the
    process that started it pass it by, and ended, with all that it started, when that one ends."""
    if not hasattr(os, "setsid"):
        return
    server, parent, folder = os.getpid(), os.environ.get(PARENT), os.environ.get(FOLDER)
    if parent is None and folder is None:
        return  # imported by something else

    def leave(code: int = 0, *, alone: bool = True) -> None:
        if os.getpid() == server:
            _keeper.end_descendants()
            if alone and folder is not None:
                remove_scratch(folder)  # the parent did not live to do it
        os._exit(code)

    def end(number: int, frame: FrameType | None) -> None:
        leave(128 + number, alone=_is_orphan(parent))

    with suppress(OSError):
        os.setsid()
    _keeper.serve_from_here()
    # Said of what an operator leaves behind, where its keeper was killed.
    warnings.filterwarnings("ignore", message="forkserver: waitpid returned unexpected pid")
    _confine.adopt_orphans()
    signal.signal(signal.SIGTERM, end)
    atexit.register(leave)  # multiprocessing ends the server once nobody holds its pipe any more
    if parent is not None:
        _confine.die_with_parent(signal.SIGTERM)
        if os.getppid() != int(parent):
            end(signal.SIGTERM, None)


def _is_orphan(parent: str | None) -> bool:
    """Whether ``parent`` is gone; it may be about to be."""
    end = time.monotonic() + _NOTICE_SECONDS
    while os.getppid() == int(parent or 0):
        if time.monotonic() > end:
            return False
        time.sleep(_PAUSE_SECONDS)
    return True


def _read_ahead() -> None:
    """Parse and compile the files of operators that are many: what is read here, no worker reads
    again. None of their code runs."""
    for path in json.loads(os.environ.get(SOURCES) or "[]"):
        for name in READING:
            with suppress(Exception):
                importlib.import_module(f"gradlint.{name}").read_ahead(path)


def _told(name: str) -> bool:
    """Whether the parent has said this of what it is going to do, by a file of this name."""
    return os.path.exists(os.path.join(os.environ.get(FOLDER, ""), name))


def _rehearse() -> None:
    """Do once what the compiler does only the first time. The code that runs is gradlint's own."""
    if os.environ.get(LOADS) == "tracing":
        with suppress(Exception):
            importlib.import_module("gradlint.checking.rehearsal").rehearse()


def _preload() -> None:
    # Nearly all that imports make stays: looking for garbage among it takes a third of their time.
    gc.disable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in _names():
            try:
                importlib.import_module(name)
                if name == ZYGOTE:
                    importlib.import_module(name).start()
            except BaseException:
                continue
        at_the_start()
        many = _told(MANY)
        if many:
            _rehearse()
    _read_ahead()
    importlib.invalidate_caches()  # here for all workers: each looks anew at what it imports from
    if "gradlint.trace.judge_integrity" in sys.modules:  # which imports torch
        sys.modules["gradlint.trace.judge_integrity"].judge_at_the_start()
    gc.freeze()  # keeps the pages of these objects shared between the forks
    if many:
        _huge_pages.collapse()
    gc.enable()


_serve()
_preload()
