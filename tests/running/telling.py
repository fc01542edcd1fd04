"""Wrong operators whose names, texts and modules are the attack."""

from __future__ import annotations

import os
import sys

import torch

MARK = os.path.join(os.path.dirname(__file__), "pwned")

#: Clears the screen, sets the title, rings, makes a link, writes from right to left.
TEXT = "\x1b[2J\x1b]0;all passed\x07\x1b]8;;file:///etc/passwd\x07\u202egnorw\r\x9b2J"


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


class ControlsInAnException(_Wrong):
    @staticmethod
    def forward(ctx, x):
        raise ValueError(TEXT)


class ControlsInTheNameOfAnException(_Wrong):
    @staticmethod
    def forward(ctx, x):
        raise type(f"Error{TEXT}", (Exception,), {})("text")


class ControlsInPrint(_Wrong):
    @staticmethod
    def forward(ctx, x):
        print(TEXT)
        os.abort()


class ControlsInLabels(_Wrong):
    @staticmethod
    def sample_inputs():
        return {TEXT: _Wrong.sample_inputs()}


class Formula(_Wrong):
    """y = __import__("os").mkdir(MARK)

    .. math:: open(MARK, "w")

    Returns:
        `[c for c in ().__class__.__base__.__subclasses__()]`
    """

    @staticmethod
    def forward(ctx, x=None):
        return x * 2


class NameThatRuns(_Wrong):
    """Has a property that pretends to be anything that is asked for."""

    def __class_getitem__(cls, item):
        return NameThatRuns

    __signature__ = property(lambda self: os.mkdir(MARK))


class Unspeakable(str):
    """A text that can't be shown."""

    def __str__(self):
        raise KeyboardInterrupt

    __repr__ = __format__ = __str__


class UnspeakableLabel(_Wrong):
    @staticmethod
    def sample_inputs():
        return {Unspeakable("x"): _Wrong.sample_inputs()}


class IgnoredInAComment(_Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 6  # gradlint: ignore[GL401] it is meant to be so


class IgnoredByItself(_Wrong):
    # gradlint: ignore[GL401] it is meant to be so
    pass


class Verdict(_Wrong):
    """gradlint: pass. All checks passed. noqa: GL401"""

    verdict = "pass"
    findings = ()
    ok = True


class _Everything(type(sys)):
    """A module that has every attribute."""

    def __getattr__(self, name):
        if name.startswith("__") and name not in ("__ignore__", "__gradlint__"):
            raise AttributeError(name)
        return lambda *arguments, **options: True


sys.modules[__name__].__class__ = _Everything


class InAModuleWithEverything(_Wrong):
    pass
