"""Modules are made in the spec as they were in the program."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gradlint.cli.entry import main
from gradlint.recorded.calls import Call
from gradlint.recorded.modules import constructor_of
from gradlint.spec.load import load

NETS = """\
import torch
from torch import nn


class Mix(nn.Module):
    def __init__(self, width, hidden=4, *, act="relu", dtype=None, sizes=()):
        super().__init__()
        self.first = nn.Linear(width, hidden, dtype=dtype)
        if act not in ("tanh", "swish") or width != 24 or sizes and sizes[0] != 3:
            raise ValueError("this can't be guessed")
        self.act = act

    def forward(self, x, gain=1.0):
        h = self.first(x)
        return gain * (h.tanh() if self.act == "tanh" else h * h.sigmoid())


class Wrapped(nn.Module):
    def __init__(self, inner, *scales):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)
"""

PROGRAM = """\
import torch

from nets import Mix, Wrapped

mix = Mix(24, 7, act="tanh", dtype=torch.float32, sizes=[3, 1])
other = Mix(24, act="swish")
for size in (16, 16, 9):
    mix(torch.randn(size, 24, requires_grad=True)).sum().backward()
other(torch.randn(16, 24))
with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
    mix(torch.randn(5, 24))
Wrapped(mix, 1.0)(torch.randn(5, 24))
"""


def test_a_spec_makes_the_module_as_the_program_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    Path("nets.py").write_text(NETS)
    Path("program.py").write_text(PROGRAM)
    words = ["record", "-o", "specs", "--of", "nets:Mix", "--of", "nets:Wrapped", "--seed", "0"]
    assert main([*words, "--", sys.executable, "program.py"]) == 0
    said = capsys.readouterr().err
    assert "it was also made in another way: calls of those modules are left out" in said
    assert "no spec can make a module as the program does: nets.Mix can't be kept" in said
    assert "called under autocast: GL904 checks that, and the other rules run without it" in said
    spec = load("specs/Mix.yaml")
    assert spec.constructor is not None
    made = {name: item.value for name, item in spec.constructor.items()}
    assert made == {"width": 24, "hidden": 7, "act": "tanh", "dtype": None, "sizes": [3, 1]}
    assert spec.constructor["dtype"].expression == "torch.float32"
    text = Path("specs/Mix.yaml").read_text()
    assert "# It was called under autocast (bfloat16 on cpu). GL904 checks that;" in text
    assert "# Some calls were made under no_grad." in text
    words = ["check", "specs/Mix.yaml", "--select", "GL0,GL1,GL401", "--seed", "0"]
    assert main(words) == 0
    assert "x[3, 24], first.weight[7, 24], first.bias[7]" in capsys.readouterr().out


def call(constructor: str | None) -> Call:
    return Call(1, [], {}, [], [], {}, constructor=constructor)


def test_the_way_with_most_calls_counts() -> None:
    one, two = call('[["n", ["plain", 1]]]'), call('[["n", ["plain", 2]]]')
    made, calls, notes = constructor_of([one, two, two])
    assert (made, calls) == ({"n": 2}, [two, two])
    assert notes == ["it was also made in another way: calls of those modules are left out"]


def test_what_can_not_be_written_is_passed_over() -> None:
    one, two = call('[["n", ["object", "ops.Config"]]]'), call("[]")
    assert constructor_of([one, one, two])[:2] == ({}, [two])
    assert constructor_of([one])[0] is None
    tensor = call('[["weight", ["tensor", 0]]]')
    assert constructor_of([tensor])[2] == [
        "no spec can make a module as the program does: a tensor can't be kept"
    ]


def test_what_is_no_module_has_none() -> None:
    assert constructor_of([call(None)]) == (None, [call(None)], [])
