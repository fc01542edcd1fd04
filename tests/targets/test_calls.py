"""What the code around an operator passes to it."""

from __future__ import annotations

import importlib
import os

import pytest
import torch

from gradlint.targets.calls import Hint, call_hints, neighbours
from gradlint.targets.source_file import read_source

MODULE = """
    import torch
    from torch.autograd import Function

    LEVELS = 16

    class Quantize(Function):
        @staticmethod
        def forward(ctx, x, bits, signed, scale=1.0): return x

    class Other(Function):
        @staticmethod
        def forward(x, dim): return x
        @staticmethod
        def setup_context(ctx, inputs, output): pass

    class ByClass(Function):
        @classmethod
        def forward(cls, ctx, x, k): return x

    def quantize(x, bits: int = 8, *, unknown):
        levels = bits - 1
        return Quantize.apply(x, bits, True), Quantize.apply(x, levels, unknown, -0.5)

    class Layer(torch.nn.Module):
        ceiling = 6.0
        def __init__(self, width, dim: int = -1):
            super().__init__()
            self.dim = dim
            self.width = width
        def forward(self, x):
            return Other.apply(x, self.dim) + Other.apply(x, dim=self.width)
        def more(self, x):
            return Quantize.apply(x, LEVELS, self.ceiling), Quantize.apply(*x)

    by_class = ByClass.apply
    def use(x): return by_class(x, (2, 3))
"""


@pytest.fixture
def module(write, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(tmp_path))
    write("called.py", MODULE)
    return importlib.import_module("called")


def test_calls_of_apply(module):
    x = Hint(False, None, "x", "", "x")
    assert call_hints(module.Quantize) == [
        {
            "x": x,
            "bits": Hint(True, 8, "bits", "int", "bits"),
            "signed": Hint(True, True, expression="True"),
        },
        {
            "x": x,
            "bits": Hint(False, None, "levels", "", "bits - 1"),
            "signed": Hint(False, None, "unknown", "", "unknown"),
            "scale": Hint(True, -0.5, expression="-0.5"),
        },
        {
            "x": x,
            "bits": Hint(True, 16, "LEVELS", "", "16"),
            "signed": Hint(True, 6.0, "ceiling", "", "6.0"),
        },
    ]


def test_attributes_lead_to_the_constructor(module):
    first, second = call_hints(module.Other)
    assert first["dim"] == Hint(True, -1, "dim", "int", "dim")
    assert second["dim"] == Hint(False, None, "width", "", "width")


def test_alias_of_apply_and_class_methods(module):
    assert call_hints(module.ByClass) == [
        {"x": Hint(False, None, "x", "", "x"), "k": Hint(True, (2, 3), expression="(2, 3)")}
    ]


def test_calls_in_other_files_of_the_folder(write, module):
    write("caller.py", "from called import Quantize\ny = Quantize.apply(1.0, 4, False)\n")
    write("broken_caller.py", "Quantize.apply(\n")
    assert call_hints(module.Quantize)[-1]["bits"] == Hint(True, 4, expression="4")


def test_a_name_is_sought_as_a_whole(write, module):
    """A file that names another operator, whose name begins or ends alike, is not even parsed."""
    source = read_source(module.__file__)
    text = "\nfrom called import {}\n"
    for number, name in enumerate(
        ("Quantizer", "ReQuantize", "Quantize2", "_Quantize", "Quantizeé")
    ):
        write(f"alike_{number}.py", text.format(name))
    assert list(neighbours(source, "Quantize")) == []
    write("caller.py", text.format("Quantize"))
    assert [os.path.basename(file.path) for file in neighbours(source, "Quantize")] == ["caller.py"]


def test_plain_functions_and_constructors(write, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(tmp_path))
    write(
        "plainly.py",
        """
        import functools
        class Net:
            def __init__(self, a, b=2): pass
        def f(x, dim, mode="sum"): return x
        def g(x): return f(x, 1, mode="mean")
        net = Net(3, b=5)
        """,
    )
    plainly = importlib.import_module("plainly")
    assert call_hints(plainly.f)[0]["mode"] == Hint(True, "mean", expression="'mean'")
    assert {name: hint.value for name, hint in call_hints(plainly.Net)[0].items()} == {
        "a": 3,
        "b": 5,
    }


@pytest.mark.parametrize("thing", [torch.relu, 3, None, int, torch.ops.aten.relu, lambda x: x])
def test_never_raises(thing):
    assert call_hints(thing) == []
