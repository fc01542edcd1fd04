"""Operators whose import, or whose first call, changes what judges them in their process.

Each is y = 2 x, with the gradient of 3 x.
"""

from __future__ import annotations

import gc
import os

import torch

from gradlint.model.events import CheckDone, Found


class _Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 3

    @staticmethod
    def sample_inputs():
        WAYS[os.environ["TWOFACED"]]()
        return (torch.linspace(0.5, 2.0, 3, dtype=torch.float64, requires_grad=True),)


class Op(_Wrong):
    pass


def _replace_rule():
    """The rule that would find it passes."""
    from gradlint.model.rule import Outcome
    from gradlint.rules.value import wrong_gradient

    wrong_gradient.probe = lambda subject: Outcome("pass", resolution=1e-9)


def _replace_numerics():
    """Every measurement agrees."""
    from gradlint.numerics import judge

    judge.verdict = lambda *arguments, **options: "agrees"


def _replace_torch():
    """Functions of torch that checkers of gradients call."""
    torch.allclose = torch.equal = lambda *arguments, **options: True
    torch.autograd.gradcheck = torch.autograd.gradgradcheck = lambda *a, **k: True
    torch.autograd.gradcheck.__module__ = "torch.autograd"
    _replace_rule()


def _replace_emit():
    """What the worker sends: findings are held back, and every check passes."""
    for found in gc.get_objects():
        if type(found).__name__ == "Channel" and hasattr(found, "_sealer"):
            frame = found._sealer.frame

            def framed(event, frame=frame):
                if isinstance(event, Found):
                    return b""
                if isinstance(event, CheckDone):
                    event.check.verdict = "pass"
                    event.check.note = ""
                return frame(event)

            found._sealer.frame = framed


WAYS = {
    "none": lambda: None,
    "rule": _replace_rule,
    "numerics": _replace_numerics,
    "torch": _replace_torch,
    "emit": _replace_emit,
}
