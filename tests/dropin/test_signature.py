"""The drop-ins take what torch's take."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest
import torch

import gradlint


@pytest.mark.parametrize("name", ["gradcheck", "gradgradcheck"])
def test_the_signature_is_torchs(name):
    ours = inspect.signature(getattr(gradlint, name)).parameters
    theirs = inspect.signature(getattr(torch.autograd, name)).parameters
    assert [(p.name, p.kind, p.default) for p in ours.values()] == [
        (p.name, p.kind, p.default) for p in theirs.values()
    ]


def test_defaults_print_as_torchs():
    assert "eps: 'float' = 1e-06" in str(inspect.signature(gradlint.gradcheck))


def test_importing_and_passing_pull_in_no_terminal():
    code = (
        "import sys, torch, gradlint\n"
        "x = torch.ones(3, dtype=torch.float64, requires_grad=True)\n"
        "assert gradlint.gradcheck(torch.sin, (x,)) and gradlint.gradgradcheck(torch.sin, (x,))\n"
        "print([m for m in ('rich', 'typer', 'pydantic', 'yaml') if m in sys.modules])\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout.strip() == "[]", run.stderr
