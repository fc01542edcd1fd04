"""Operators that do harm: each must become a finding, and none may touch what runs beside it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import signal
import sys
import threading
import time

import torch


class _Double(torch.autograd.Function):
    """y = 2 x, right; the ops below spoil one half of it."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2

    @staticmethod
    def sample_inputs():
        return (torch.linspace(0.5, 2.0, 3, dtype=torch.float64, requires_grad=True),)


class Good(_Double):
    @staticmethod
    def forward(ctx, x):
        return x * 2


class SegfaultForward(_Double):
    @staticmethod
    def forward(ctx, x):
        print("a last word")
        return ctypes.string_at(0)


class SegfaultBackward(_Double):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return ctypes.string_at(0)


class Abort(_Double):
    @staticmethod
    def forward(ctx, x):
        os.abort()


class ExitNow(_Double):
    @staticmethod
    def forward(ctx, x):
        os._exit(0)


class ExitInC(_Double):
    @staticmethod
    def forward(ctx, x):
        ctypes.CDLL(None)._exit(0)


class SysExit(_Double):
    @staticmethod
    def forward(ctx, x):
        sys.exit(0)


class SysExitBackward(_Double):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        sys.exit(0)


class Interrupt(_Double):
    @staticmethod
    def forward(ctx, x):
        raise KeyboardInterrupt


class KillItself(_Double):
    @staticmethod
    def forward(ctx, x):
        os.kill(os.getpid(), signal.SIGKILL)


class EndlessPython(_Double):
    @staticmethod
    def forward(ctx, x):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            pass


class EndlessC(_Double):
    @staticmethod
    def forward(ctx, x):
        # Holds the GIL for hours.
        return 3 ** (3**19) + 3 ** (3**20)


class EndlessBackward(_Double):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        ctypes.PyDLL(None).sleep(10_000)  # holds the GIL


class AllocateTensors(_Double):
    @staticmethod
    def forward(ctx, x):
        kept = []
        while True:
            kept.append(torch.empty(1 << 27))


class AllocateObjects(_Double):
    @staticmethod
    def forward(ctx, x):
        kept = []
        while True:
            kept.append(bytearray(1 << 26))


class Recursion(_Double):
    @staticmethod
    def forward(ctx, x):
        return Recursion.forward(ctx, x)


class Flood(_Double):
    @staticmethod
    def forward(ctx, x):
        line = "x" * (1 << 20)
        for _ in range(1024):
            print(line)
        return x * 2


class BadText(_Double):
    @staticmethod
    def forward(ctx, x):
        class Unspeakable(Exception):
            def __str__(self):
                raise RuntimeError("no text")

            __repr__ = __str__

        raise Unspeakable


class Surrogates(_Double):
    @staticmethod
    def forward(ctx, x):
        raise ValueError("lone \udc80 surrogate, \x1b[31mred, [red]markup[/]")


class LeaveThreads(_Double):
    @staticmethod
    def forward(ctx, x):
        threading.Thread(target=time.sleep, args=(10_000,)).start()
        return x * 2


class Fork(_Double):
    @staticmethod
    def forward(ctx, x):
        os.fork()
        return x * 2


class ForkAndStay(_Double):
    @staticmethod
    def forward(ctx, x):
        if os.fork() == 0:
            time.sleep(10_000)
        return x * 2


class CloseStdout(_Double):
    @staticmethod
    def forward(ctx, x):
        sys.stdout.close()
        return x * 2


class CloseDescriptors(_Double):
    @staticmethod
    def forward(ctx, x):
        for descriptor in (0, 1, 2):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        return x * 2


class CloseEverything(_Double):
    @staticmethod
    def forward(ctx, x):
        os.closerange(0, 4096)
        return x * 2


class ChangeState(_Double):
    @staticmethod
    def forward(ctx, x):
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        torch.manual_seed(0)
        random.seed(0)
        torch.use_deterministic_algorithms(True)
        torch.set_num_threads(7)
        os.environ["GRADLINT_HOSTILE"] = "1"
        os.chdir("/")
        return x * 2


class SeekingExit(torch.autograd.Function):
    """Without ``sample_inputs``: it misbehaves while inputs are looked for."""

    @staticmethod
    def forward(ctx, x):
        sys.exit(0)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class SeekingSegfault(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return ctypes.string_at(0)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class SeekingAllocation(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        kept = []
        while True:
            kept.append(torch.empty(1 << 27))

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output
