"""Processes that hold an op and nothing of gradlint (``gradlint.ops.bare``), and how to ask them.

The fork server forks a *zygote* as soon as it has torch, before it imports anything that judges.
Forks of the zygote run ops. Where there is no fork server, each of them is a program of its own.
"""

from __future__ import annotations

import gc
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from gradlint.ops import bare as _bare
from gradlint.running import _huge_pages

_TEXT = Path(_bare.__file__).read_text(encoding="utf-8")
_PAGES = Path(_huge_pages.__file__).read_text(encoding="utf-8")

#: What of a request says what is imported, and how.
_IMPORTED = ("name", "file", "imports", "sys_path", "folder", "environment", "memory_mb", "seed")

#: Prefix of the environment variables that are gradlint's own.
_OURS = "GRADLINT_"


class Unable(Exception):
    """The op's process can't do what it was asked; says why."""


class BareProcess:
    """A fresh process with one op in it.

    Args:
        request: what to load, as ``gradlint.ops.bare`` reads it; arrays: the tensors of the call.
        key: names what is imported for it, if a process may be kept that has imported it.

    Attributes:
        key: as above.
        forward_calls, backward_calls: what was asked of it.
        held: whether the op's module was imported before, in it or in the one that it is a fork of.
    """

    def __init__(
        self, request: dict[str, Any], arrays: Sequence[torch.Tensor], key: str = ""
    ) -> None:
        self.key = key
        self.held = False
        self._program: subprocess.Popen[bytes] | None = None
        self._lifeline: socket.socket | None = None
        if not alive():
            self._program = _program()
            assert self._program.stdin is not None
            assert self._program.stdout is not None
            self._reader, self._writer = self._program.stdout.fileno(), self._program.stdin.fileno()
        else:
            self.held = bool(key)  # as far as is known
            self._channel, theirs = socket.socketpair()
            self._lifeline, watched = socket.socketpair()
            with theirs, watched, _failing():
                descriptors = [theirs.fileno(), watched.fileno()]
                socket.send_fds(_control[0], [_asking(request, key)], descriptors)
            self._reader = self._writer = self._channel.fileno()
        self.load(request, arrays)

    def load(self, request: dict[str, Any], arrays: Sequence[torch.Tensor]) -> None:
        """Have it load an op: after the first one, another one of the same module.

        Raises:
            Unable: the process is gone.
        """
        self.forward_calls = self.backward_calls = 0
        with _failing():
            _bare.send(self._writer, {**request, "ask": "load"}, arrays)

    def ready(self) -> None:
        """Wait until the op is loaded.

        Raises:
            Unable: it can't be loaded.
        """
        header, _ = self._answer()
        self.held = bool(header.get("held"))

    def outputs(self, values: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], list[bool]]:
        """What forward returns at ``values``, and whether each of it is differentiable.

        Raises:
            Unable: forward raised, or the process is gone.
        """
        self.forward_calls += 1
        header, found = self._asked({"ask": "outputs"}, values)
        return found, _flags(header.get("differentiable"), len(found))

    def gradients(
        self, values: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]
    ) -> list[torch.Tensor | None]:
        """What backward returns at ``values``, one gradient or None for each.

        Raises:
            Unable: it raised, or what it returned does not fit the inputs.
        """
        self.forward_calls += 1
        self.backward_calls += 1
        request = {"ask": "gradients", "count": len(values)}
        header, found = self._asked(request, [*values, *cotangents])
        given = _flags(header.get("given"), len(values))
        if sum(given) != len(found):
            raise Unable("its answer has no meaning")
        left = iter(found)
        gradients = [next(left) if there else None for there in given]
        for value, gradient in zip(values, gradients, strict=True):
            if gradient is not None and gradient.shape != value.shape:
                raise Unable("a gradient has another shape than its input")
        return gradients

    def close(self) -> None:
        """End the process."""
        if self._program is not None:
            with suppress(PermissionError):  # under confinement; it ends when nobody asks any more
                self._program.kill()
            self._program.communicate()
            return
        assert self._lifeline is not None
        self._channel.close()
        self._lifeline.close()

    # -- inner workings -------------------------------------------------------------------------

    def _asked(
        self, request: dict[str, Any], arrays: Sequence[torch.Tensor]
    ) -> tuple[dict[str, Any], list[torch.Tensor]]:
        with _failing():
            _bare.send(self._writer, request, arrays)
        return self._answer()

    def _answer(self) -> tuple[dict[str, Any], list[torch.Tensor]]:
        with _failing():
            header, arrays = _bare.receive(self._reader)
        if "error" in header:
            raise Unable(f"by itself it raises {header['error']}")
        return header, arrays


def _asking(request: dict[str, Any], key: str) -> bytes:
    """What the zygote is told of ``request``: what is to be imported, if that may be kept."""
    if not key:
        return b"!"
    text = json.dumps({"key": key, **{name: request[name] for name in _IMPORTED}}).encode()
    return text if len(text) <= _bare.MOST_REQUEST else b"!"


@contextmanager
def _failing() -> Iterator[None]:
    """In the body, what the other side does wrong is an :class:`Unable`."""
    try:
        yield
    except (OSError, EOFError) as error:
        raise Unable("its process ended") from error
    except ValueError as error:
        raise Unable(f"its answer can't be read: {error}") from error


def _flags(found: Any, count: int) -> list[bool]:
    """``found``, if it is ``count`` truth values."""
    if not isinstance(found, list) or len(found) != count:
        raise Unable("its answer has no meaning")
    if not all(type(flag) is bool for flag in found):
        raise Unable("its answer has no meaning")
    return found


# -- The zygote ------------------------------------------------------------------------------------
#: The way to the zygote, which a process inherits from the fork server; empty without one.
_control: list[socket.socket] = []


def start() -> None:
    """In the fork server: fork the zygote, where the platform has what it needs."""
    if sys.platform != "linux":
        return
    with suppress(OSError):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork():
            theirs.close()
            _control.append(ours)
            return
        _become_bare(theirs.detach())


def alive() -> bool:
    """Whether there is a zygote. An op that it forked may have ended it."""
    if not _control:
        return False
    poll = select.poll()
    poll.register(_control[0], 0)  # that nobody is there any more is told without being asked for
    return not poll.poll(0)


def leave() -> None:
    """In a worker that runs an op itself: give up the way to the zygote."""
    while _control:
        _control.pop().close()


def _become_bare(control: int) -> None:
    """Forget gradlint, and be the zygote for good."""
    try:
        for name in [name for name in sys.modules if "gradlint" in name]:
            del sys.modules[name]
        for name in [name for name in os.environ if name.startswith(_OURS)]:
            del os.environ[name]
        # What torch is made of is never garbage. To look for some among it would copy it all into
        # every process that makes many objects, a file of many operators for one.
        gc.freeze()
        gc.enable()  # the server imports without it
        names, pages = _executed(_TEXT), _executed(_PAGES)
        names["start_zygote"](control, pages["collapse"])
    finally:
        os._exit(1)


def _executed(text: str) -> dict[str, Any]:
    """What the module with this text defines, under a name that says nothing."""
    names: dict[str, Any] = {"__name__": "main"}
    exec(compile(text, "<string>", "exec", optimize=2), names)
    return names


def _program() -> subprocess.Popen[bytes]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
    return subprocess.Popen(
        [sys.executable, "-c", f"{_TEXT}\n\nmain()\n"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
