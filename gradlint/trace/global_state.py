"""Global state that an operator may change, restored for whatever runs next."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import torch

from gradlint.trace import _modes
from gradlint.trace.originals import put_back
from gradlint.trace.random import generator_states

if sys.platform != "win32":
    import resource

#: Devices for which autocast is switched on separately.
_CAST = ("cpu", "cuda")

#: Flags of cuDNN that change what convolutions compute.
_CUDNN = ("enabled", "benchmark", "deterministic", "allow_tf32")

#: Stands for the value of a setting that could not be read.
_UNREADABLE = object()


@dataclass(frozen=True)
class Setting:
    """A piece of global state.

    Args:
        name: its name in messages.
        read: returns its value.
        restore: sets it to a value that was read before.
        shown: describes a value in words.
    """

    name: str
    read: Callable[[], Any]
    restore: Callable[[Any], Any]
    shown: Callable[[Any], str] = str


def _set_deterministic(value: tuple[bool, bool]) -> None:
    torch.use_deterministic_algorithms(value[0], warn_only=value[1])


def _environment() -> dict[Any, Any]:
    # Reading the encoded form takes a hundredth of ``dict(os.environ)``, and this runs often.
    encoded = getattr(os.environ, "_data", None)
    return dict(encoded) if isinstance(encoded, dict) else dict(os.environ)


def _restore_environment(value: dict[Any, Any]) -> None:
    texts = {decoded(name): decoded(text) for name, text in value.items()}
    for name in os.environ.keys() - texts.keys():
        del os.environ[name]
    for name, text in texts.items():
        if os.environ.get(name) != text:
            os.environ[name] = text


def decoded(text: Any) -> str:
    """A name or value of :func:`_environment` as text."""
    return os.fsdecode(text)


def _restore_default_device(value: torch.device) -> None:
    # A default device is a mode on a stack; None removes it, as it was without a default device.
    torch.set_default_device(None)
    if value.type != "cpu":
        torch.set_default_device(value)


def _autocast() -> tuple[bool, ...]:
    return tuple(torch.is_autocast_enabled(device) for device in _CAST)


def _restore_autocast(value: tuple[bool, ...]) -> None:
    for device, enabled in zip(_CAST, value, strict=True):
        torch.set_autocast_enabled(device, enabled)


def _cudnn() -> tuple[bool | None, ...]:
    # Not by torch.backends, which raises once torch.testing has frozen its flags.
    return tuple(_flag(name) for name in _CUDNN)


def _flag(name: str) -> bool | None:
    try:
        return bool(getattr(torch._C, f"_get_cudnn_{name}")())
    except RuntimeError:  # TF32 was set by its newer interface
        return None


def _restore_cudnn(value: tuple[bool | None, ...]) -> None:
    for name, enabled in zip(_CUDNN, value, strict=True):
        if enabled is not None:
            getattr(torch._C, f"_set_cudnn_{name}")(enabled)


#: All settings, in the order in which they are restored.
SETTINGS = (
    Setting("default dtype", torch.get_default_dtype, torch.set_default_dtype),
    Setting("default device", torch.get_default_device, _restore_default_device),
    # Entering an inference mode sets the grad mode too.
    Setting("inference mode", torch.is_inference_mode_enabled, _modes.set_inference),
    Setting("function modes", _modes.functions, _modes.pop_functions, _modes.shown),
    Setting("dispatch modes", _modes.dispatches, _modes.pop_dispatches, _modes.shown),
    Setting("saved tensor hooks", _modes.hooks, _modes.pop_hooks, _modes.shown),
    Setting("grad mode", torch.is_grad_enabled, torch.set_grad_enabled),
    Setting(
        "anomaly detection",
        lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
        lambda value: torch.autograd.set_detect_anomaly(*value),
    ),
    Setting(
        "deterministic algorithms",
        lambda: (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        ),
        _set_deterministic,
    ),
    Setting("number of threads", torch.get_num_threads, torch.set_num_threads),
    Setting(
        "float32 matmul precision",
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
    ),
    Setting("autocast", _autocast, _restore_autocast),
    Setting("cuDNN flags", _cudnn, _restore_cudnn),
    Setting("garbage collection", gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
    Setting("recursion limit", sys.getrecursionlimit, sys.setrecursionlimit),
    Setting("working directory", os.getcwd, os.chdir),
    Setting("environment variables", _environment, _restore_environment),
    Setting(
        "sys.path", lambda: list(sys.path), lambda value: sys.path.__setitem__(slice(None), value)
    ),
    Setting("sys.settrace", sys.gettrace, sys.settrace, _modes.shown),
    Setting("sys.setprofile", sys.getprofile, sys.setprofile, _modes.shown),
)


#: Settings under which calls of gradlint's own may fail.
_NEEDED = (
    *("default device", "inference mode", "function modes", "dispatch modes"),
    *("saved tensor hooks", "grad mode", "recursion limit"),
)

#: Limits of the process that may be raised, but not lowered, without harm to gradlint. That of
#: memory is gradlint's own, and exceeding it has a finding of its own.
_LIMITS = {
    "RLIMIT_AS": "limit of address space",
    "RLIMIT_CPU": "limit of processor time",
    "RLIMIT_FSIZE": "limit of file sizes",
    "RLIMIT_NOFILE": "limit of open files",
    "RLIMIT_NPROC": "limit of processes",
    "RLIMIT_STACK": "limit of the stack",
}


class Needs:
    """Global state that gradlint's own calls need, as it is now."""

    def __init__(self) -> None:
        self._settings = [(s, _read(s)) for s in SETTINGS if s.name in _NEEDED]
        self._places = [(s, _read(s)) for s in SETTINGS if s.name == "working directory"]
        self._limits = _limits()
        self._importers = _importers()

    def changed(self, error: BaseException) -> list[str]:
        """Names of what is different, or lower, since, and may be why gradlint failed.

        Args:
            error: what it failed with. Libraries add importers of their own, which is no fault
                unless an import fails; and programs go to other folders, unless one is not found.
        """
        now = _limits()
        found = [s.name for s, value in self._settings if _read(s) != value]
        found += [name for name, limit in self._limits.items() if now[name] < limit]
        if isinstance(error, OSError):
            found += [s.name for s, value in self._places if _read(s) != value]
        if isinstance(error, ImportError):
            found += [
                name for name, value in _importers().items() if value != self._importers[name]
            ]
        return found


def _importers() -> dict[str, list[Any]]:
    """What modules are found by."""
    return {"sys.meta_path": list(sys.meta_path), "sys.path_hooks": list(sys.path_hooks)}


def _limits() -> dict[str, float]:
    """Name → soft limit of this process; infinity where there is none."""
    if sys.platform == "win32":
        return {}
    soft = {name: resource.getrlimit(getattr(resource, key))[0] for key, name in _LIMITS.items()}
    return {
        name: float("inf") if limit == resource.RLIM_INFINITY else float(limit)
        for name, limit in soft.items()
    }


@dataclass
class Changes:
    """What the body changed, in words such as ``default dtype: torch.float32 → torch.float64``.

    Random number generators are restored too, but drawing from them does not count as a change.
    """

    texts: list[str] = field(default_factory=list)


@contextmanager
def preserved_state() -> Iterator[Changes]:
    """Restore global state after the body, however it ends, and list what it had changed.

    This covers torch's defaults, modes and thread count, every random number generator of the CPU,
    the working directory, the environment, ``sys.path``, warning filters, the standard streams
    and their descriptors.
    """
    changes = Changes()
    before = [(setting, _read(setting)) for setting in SETTINGS]
    generators, filters = generator_states(cuda=False), list(warnings.filters)
    streams = {name: getattr(sys, name) for name in ("stdin", "stdout", "stderr")}
    descriptors = {fd: _duplicate(fd) for fd in (1, 2)}
    try:
        yield changes
    finally:
        put_back()
        for fd, copy in descriptors.items():
            if _put_back(fd, copy):
                changes.texts.append(f"descriptor {fd} was closed or replaced")
        for name, stream in streams.items():
            _restore_stream(name, stream, changes)
        for setting, value in before:
            _restore(setting, value, changes)
        # The filters come last: while other settings are restored, warnings are switched off.
        if warnings.filters != filters:
            changes.texts.append("warning filters changed")
            warnings.filters[:] = filters  # type: ignore[index]
        generators.restore()


def _read(setting: Setting) -> Any:
    try:
        return setting.read()
    except Exception:
        return _UNREADABLE


def _restore(setting: Setting, value: Any, changes: Changes) -> None:
    now = _read(setting)
    if value is _UNREADABLE or now == value:
        return
    if (difference := _difference(setting, value, now)) is not None:
        changes.texts.append(f"{setting.name}{difference}")
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        setting.restore(value)


def _difference(setting: Setting, before: Any, now: Any) -> str | None:
    if isinstance(before, dict) and isinstance(now, dict):
        names = {decoded(k) for k in before.keys() | now.keys() if before.get(k) != now.get(k)}
        # torch sets variables of its own when some of its parts are first used.
        names = {name for name in names if not name.startswith("TORCH")}
        return ": " + ", ".join(sorted(names)) if names else None
    if isinstance(before, list):
        return " changed"
    return f": {setting.shown(before)} → {setting.shown(now)}"


def _restore_stream(name: str, stream: Any, changes: Changes) -> None:
    now = getattr(sys, name, None)
    closed = bool(getattr(stream, "closed", False))
    if now is stream and not closed:
        return
    changes.texts.append(f"sys.{name} was closed" if closed else f"sys.{name} was replaced")
    if not closed:
        setattr(sys, name, stream)
        return
    fd = {"stdin": 0, "stdout": 1, "stderr": 2}[name]
    mode = "r" if name == "stdin" else "w"
    with suppress(OSError):
        fresh = open(fd, mode, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        setattr(sys, name, fresh)


def _duplicate(fd: int) -> int | None:
    try:
        return os.dup(fd)
    except OSError:
        return None


def _put_back(fd: int, copy: int | None) -> bool:
    """Make ``fd`` point to the same file as ``copy``, and close that; True if it had changed."""
    if copy is None:
        return False
    try:
        changed = not os.path.sameopenfile(fd, copy)
    except OSError:
        changed = True
    with suppress(OSError):
        if changed:
            os.dup2(copy, fd)
    with suppress(OSError):
        os.close(copy)
    return changed
