"""Operators that are right while gradlint looks, and wrong otherwise; each y = 2 x, or as said."""

from __future__ import annotations

import sys
from typing import ClassVar

import torch


class _Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2

    @staticmethod
    def sample_inputs():
        return (torch.linspace(0.5, 2.0, 3, dtype=torch.float64, requires_grad=True),)


class LooksForModules(_Op):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * (2 if "gradlint" in sys.modules else 3)


class LooksForAnyModule(_Op):
    """Also for modules of gradlint that were imported in another place."""

    @staticmethod
    def backward(ctx, grad_output):
        found = any("gradlint" in name for name in list(sys.modules))
        return grad_output * (2 if found else 3)


class LooksAtTheStack(_Op):
    @staticmethod
    def forward(ctx, x):
        frame = sys._getframe()
        while frame is not None:
            if "gradlint" in frame.f_globals.get("__name__", ""):
                ctx.factor = 2
                return x * 2
            if "gradlint/running" in frame.f_code.co_filename:
                ctx.factor = 2
                return x * 2
            frame = frame.f_back
        ctx.factor = 3
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.factor


class LooksAtItsName(_Op):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * (2 if __name__ == "twofaced" else 3)


class LooksAtItsFile(_Op):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * (2 if __file__.endswith("twofaced.py") else 3)


class LooksAtTheCommand(_Op):
    @staticmethod
    def backward(ctx, grad_output):
        words = " ".join([*sys.argv, *sys.orig_argv])
        return grad_output * (2 if "gradlint" in words or "spawn" in words else 3)


class AnswersFromEarlierCalls(_Op):
    """y = 2 x, with the gradient of 3 x: near where it was called first, it returns what fits."""

    seen: ClassVar[list[torch.Tensor]] = []

    @staticmethod
    def forward(ctx, x):
        for known in AnswersFromEarlierCalls.seen:
            near = known.shape == x.shape and (known - x).abs().max() < 0.1 * known.abs().max()
            if near and known.dtype == x.dtype:
                return 2 * known + 3 * (x - known)
        AnswersFromEarlierCalls.seen.append(x.detach().clone())
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 3


class KnowsTheSample(_Op):
    """Right at one value of its input, and along the way to it."""

    known = torch.linspace(0.5, 2.0, 3, dtype=torch.float64)

    @staticmethod
    def forward(ctx, x):
        known = KnowsTheSample.known
        ctx.factor = 2 if x.shape != known.shape or torch.equal(x, known.to(x)) else 3
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.factor


class RightForKnownSeeds(_Op):
    """Right where the generator that drew the cotangent is found among the callers."""

    @staticmethod
    def backward(ctx, grad_output):
        frame = sys._getframe()
        while frame is not None:
            if isinstance(frame.f_locals.get("seed"), int) or "subject" in frame.f_locals:
                return grad_output * 2
            frame = frame.f_back
        return grad_output * 3
