"""Operators that tell ``stub_examine`` how to behave."""

from __future__ import annotations

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


class Passes(_Op):
    plan: ClassVar[dict[str, str]] = {}


class CrashesOnce(_Op):
    plan: ClassVar[dict[str, str]] = {"GL101": "finding", "GL301": "crash", "GL401": "finding"}


class CrashesAlways(_Op):
    plan: ClassVar[dict[str, str]] = dict.fromkeys(("GL101", "GL301", "GL401"), "crash")


class Hangs(_Op):
    plan: ClassVar[dict[str, str]] = {"GL101": "finding", "GL301": "hang"}


class Bug(_Op):
    plan: ClassVar[dict[str, str]] = {"GL301": "bug"}


class Memory(_Op):
    plan: ClassVar[dict[str, str]] = {"GL101": "memory"}


class MemoryInALaterRule(_Op):
    plan: ClassVar[dict[str, str]] = {"GL301": "memory"}


class RefusedInALaterRule(_Op):
    plan: ClassVar[dict[str, str]] = {"GL301": "refused"}
