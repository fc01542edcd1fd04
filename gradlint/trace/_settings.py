"""Pieces of global state that an operator may change: how each is read and put back."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from gradlint.trace import _modes


@dataclass(frozen=True)
class Setting:
    """A piece of global state. ``restore`` is called with the value read before; ``shown`` says a
    value in words."""

    name: str
    read: Callable[[], Any]
    restore: Callable[[Any], Any]
    shown: Callable[[Any], str] = str


def _set_deterministic(value: tuple[bool, bool]) -> None:
    torch.use_deterministic_algorithms(value[0], warn_only=value[1])


def _environment() -> dict[Any, Any]:
    # The encoded form costs a hundredth of ``dict(os.environ)``, and this runs often.
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
    """Text of a name or value in :func:`_environment`."""
    return os.fsdecode(text)


def _restore_default_device(value: torch.device) -> None:
    # A default device is a mode on a stack; None takes it off where there was none before.
    torch.set_default_device(None)
    if value.type != "cpu":
        torch.set_default_device(value)


def _autocast() -> tuple[bool, ...]:
    return tuple(torch.is_autocast_enabled(device) for device in _CAST)


def _restore_autocast(value: tuple[bool, ...]) -> None:
    for device, enabled in zip(_CAST, value, strict=True):
        torch.set_autocast_enabled(device, enabled)


def _cudnn() -> tuple[bool | None, ...]:
    # Below torch.backends: that refuses once torch.testing has frozen its flags.
    return tuple(_flag(name) for name in _CUDNN)


def _flag(name: str) -> bool | None:
    try:
        return bool(getattr(torch._C, f"_get_cudnn_{name}")())
    except RuntimeError:  # of TF32, where it was set by its newer interface
        return None


def _restore_cudnn(value: tuple[bool | None, ...]) -> None:
    for name, enabled in zip(_CUDNN, value, strict=True):
        if enabled is not None:
            getattr(torch._C, f"_set_cudnn_{name}")(enabled)


#: Devices that autocast is switched on for one by one.
_CAST = ("cpu", "cuda")
#: Flags of cuDNN that change what convolutions compute.
_CUDNN = ("enabled", "benchmark", "deterministic", "allow_tf32")

#: In the order in which they are put back.
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
