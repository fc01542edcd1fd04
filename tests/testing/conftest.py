"""Runs of pytest inside of a test, with the plugin of this checkout."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import entry_points

import pytest
from _pytest.pytester import SysModulesSnapshot

#: The module of the plugin, as the entry point names it.
PLUGIN = "gradlint.pytest_plugin"

_INSTALLED = any(point.value == PLUGIN for point in entry_points(group="pytest11"))

#: Options of every run: the plugin, where the environment was made before it had an entry point,
#: and no files but those of the test.
OPTIONS = (*(() if _INSTALLED else ("-p", PLUGIN)), "-p", "no:cacheprovider")

Run = Callable[..., pytest.RunResult]

#: Operators of the test modules below, right and wrong.
OPERATORS = """
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output


class Half(Square):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return x * grad_output


X = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """``run(*options)`` runs pytest in this process, in the folder of ``pytester``."""
    monkeypatch.setenv("COLUMNS", "120")
    for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "GRADLINT_SEED"):
        monkeypatch.delenv(name, raising=False)

    def restore(_: SysModulesSnapshot) -> None:
        # All modules that the run imported would be forgotten; PyTorch's can't be imported twice.
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", "")).startswith(str(pytester.path)):
                del sys.modules[name]

    monkeypatch.setattr(SysModulesSnapshot, "restore", restore)
    return lambda *options: pytester.runpytest_inprocess(*OPTIONS, *options)


@pytest.fixture
def suite(pytester: pytest.Pytester) -> Callable[[str], None]:
    """``suite(text)`` writes a test module that has the operators above, too."""

    def write(text: str) -> None:
        pytester.makepyfile(test_ops=OPERATORS + text)

    return write
