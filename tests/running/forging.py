"""Operators that speak to gradlint in the place of the worker that runs them.

Each is wrong, in that its backward returns three times the gradient, and tries to pass all the
same; or it tries to run code in the process that reports.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import pickle
import stat
import struct
import sys
from typing import ClassVar

import torch

from gradlint.model.events import Begin, CheckDone
from gradlint.model.report import Check
from gradlint.running.events import Done

#: Made by the pickle, if anything loads it.
MARK = "pwned"


class _Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 6

    @staticmethod
    def sample_inputs():
        return (torch.linspace(0.5, 2.0, 3, dtype=torch.float64, requires_grad=True),)


def _descriptors():
    return [int(name) for name in os.listdir("/proc/self/fd")]


def _sockets():
    for descriptor in _descriptors():
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                yield descriptor


def _channel():
    """The worker's channel, wherever it is."""
    for found in gc.get_objects():
        if type(found).__name__ == "Channel" and hasattr(found, "send"):
            return found
    return os._exit.__self__


def _frames(*events):
    """Frames that validate: made with the worker's own key, in its own order."""
    sealer = _channel()._sealer
    return b"".join(sealer.frame(event) for event in events)


def _running():
    """Code and sample of the check that called the op."""
    frame = sys._getframe()
    while frame is not None:
        if "rule" in frame.f_locals and "subject" in frame.f_locals:
            return frame.f_locals["rule"].code, frame.f_locals["subject"].sample.label
        frame = frame.f_back
    return None


class _Bomb:
    def __reduce__(self):
        return (open, (os.path.join(os.path.dirname(__file__), MARK), "w"))


class Bomb(_Wrong):
    """What ran code in the parent when frames were pickles."""

    @staticmethod
    def forward(ctx, x):
        body = pickle.dumps(_Bomb())
        for descriptor in _descriptors():
            for head in (struct.pack(">Q", len(body)), struct.pack(">I", len(body)), b""):
                with contextlib.suppress(OSError):
                    os.set_blocking(descriptor, False)
                    os.write(descriptor, head + body)
        return x * 2


class Garbage(_Wrong):
    @staticmethod
    def forward(ctx, x):
        for descriptor in _sockets():
            for _ in range(64):
                os.write(descriptor, os.urandom(1 << 16))
        return x * 2


class Oversized(_Wrong):
    @staticmethod
    def forward(ctx, x):
        for descriptor in _sockets():
            os.write(descriptor, struct.pack(">I", 1 << 31) + bytes(100))
        return x * 2


class Truncated(_Wrong):
    """The frames of the worker are taken for the rest of this one."""

    @staticmethod
    def forward(ctx, x):
        for descriptor in _sockets():
            os.write(descriptor, struct.pack(">I", 300) + bytes(100))
        return x * 2


class TruncatedAtTheEnd(_Wrong):
    @staticmethod
    def forward(ctx, x):
        for descriptor in _sockets():
            os.write(descriptor, struct.pack(">I", 300) + bytes(100))
        ctypes.CDLL(None)._exit(0)


class SendsCheck(_Wrong):
    @staticmethod
    def forward(ctx, x):
        if _running():
            code, sample = _running()
            _channel().send(CheckDone(Check(code, "pass", sample)))
        return x * 2


class SendsDone(_Wrong):
    @staticmethod
    def forward(ctx, x):
        os._exit.__self__.send(Done())
        ctypes.CDLL(None)._exit(0)


class Replays(_Wrong):
    """Records what the worker writes, and writes it again."""

    recorded: ClassVar[list[bytes]] = []
    write = os.write

    @staticmethod
    def forward(ctx, x):
        def write(descriptor, data):
            Replays.recorded.append(bytes(data))
            return Replays.write(descriptor, data)

        os.write = write
        if Replays.recorded:
            for descriptor in _sockets():
                Replays.write(descriptor, Replays.recorded[-1])
        return x * 2


class ForgesCheck(_Wrong):
    """Around the channel, with its key and its numbers: a result for the rule that runs."""

    @staticmethod
    def forward(ctx, x):
        if _running():
            code, sample = _running()
            os.write(_channel()._fd, _frames(CheckDone(Check(code, "pass", sample))))
        return x * 2


class ForgesCheckNeverBegun(_Wrong):
    @staticmethod
    def forward(ctx, x):
        if _running():
            _, sample = _running()
            os.write(_channel()._fd, _frames(CheckDone(Check("GL401", "pass", sample))))
        return x * 2


class ForgesUnknownRule(_Wrong):
    @staticmethod
    def forward(ctx, x):
        if _running():
            code, sample = _running()
            passed = CheckDone(Check(code, "pass", sample))
            os.write(_channel()._fd, _frames(passed, Begin("GL999", sample)))
        return x * 2


class ForgesDone(_Wrong):
    """The end, before the rules that would find it out have run."""

    @staticmethod
    def forward(ctx, x):
        if _running():
            code, sample = _running()
            passed = CheckDone(Check(code, "pass", sample))
            os.write(_channel()._fd, _frames(passed, Done()))
            ctypes.CDLL(None)._exit(0)
        return x * 2


class ForgesInChild(_Wrong):
    """Frames that are right in all but the process that wrote them."""

    @staticmethod
    def forward(ctx, x):
        if _running():
            code, sample = _running()
            frames = _frames(CheckDone(Check(code, "pass", sample)))
            child = os.fork()
            if child == 0:
                os.write(_channel()._fd, frames)
                ctypes.CDLL(None)._exit(0)
            os.waitpid(child, 0)
        return x * 2


class BombInChild(_Wrong):
    @staticmethod
    def forward(ctx, x):
        if os.fork() == 0:
            with contextlib.suppress(BaseException):
                Bomb.forward(ctx, x)
            ctypes.CDLL(None)._exit(0)
        os.wait()
        return x * 2
