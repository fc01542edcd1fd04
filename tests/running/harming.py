"""Right operators that end, stop or outlive the processes around them, and one that does not."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time

import torch


class _Double(torch.autograd.Function):
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


def _server():
    with open(f"/proc/{os.getppid()}/stat") as told:
        return int(told.read().rpartition(")")[2].split()[1])


class KillsServer(_Double):
    @staticmethod
    def forward(ctx, x):
        os.kill(_server(), signal.SIGKILL)
        time.sleep(60)
        return x * 2


class StopsServer(_Double):
    @staticmethod
    def forward(ctx, x):
        os.kill(_server(), signal.SIGSTOP)
        return x * 2


class KillsParent(_Double):
    @staticmethod
    def forward(ctx, x):
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
        return x * 2


class StopsParent(_Double):
    @staticmethod
    def forward(ctx, x):
        os.kill(os.getppid(), signal.SIGSTOP)
        return x * 2


class KillsWhereItIsAlone(_Double):
    """Ends the process of which all are forks that confirm a pass."""

    @staticmethod
    def forward(ctx, x):
        if "gradlint.checking.examine" not in sys.modules:
            parent = os.getppid()
            os.kill(parent, signal.SIGKILL)
            while os.getppid() == parent:  # on a busy machine its end takes a while
                time.sleep(0.001)
        return x * 2


class RemovesFolder(_Double):
    """Where gradlint was started."""

    @staticmethod
    def forward(ctx, x):
        shutil.rmtree(os.getcwd(), ignore_errors=True)
        return x * 2


class LeavesDaemon(_Double):
    """Of a session of its own, and adopted by whoever takes orphans."""

    @staticmethod
    def forward(ctx, x):
        subprocess.run(["sh", "-c", "setsid sleep 98765 & exit 0"], check=True)
        return x * 2


_helpers = []


class KeepsAHelper(_Double):
    """A process that serves it, and that ends by itself once nobody can write to it any more."""

    @staticmethod
    def forward(ctx, x):
        if not _helpers:
            _helpers.append(subprocess.Popen(["cat"], stdin=subprocess.PIPE))
        return x * 2


class CrashesAfterDaemon(_Double):
    @staticmethod
    def forward(ctx, x):
        subprocess.run(["sh", "-c", "setsid sleep 98765 & exit 0"], check=True)
        os.abort()
