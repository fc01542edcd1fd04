"""A list of blocks is made of the modules in the operator's file that backward can undo."""

from __future__ import annotations

import importlib.util
import sys

import pytest
import torch

import gradlint
from gradlint.inputs._infer import infer
from gradlint.targets.build import from_object

REVERSIBLE = '''
import torch
from torch import nn
from torch.autograd import Function

class Half(nn.Module):
    """Has a forward only."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, x):
        return self.f(x)

class Block(nn.Module):
    def __init__(self, f, g, depth=None):
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x, scale=1.0):
        x1, x2 = torch.chunk(x, 2, dim=2)
        with torch.no_grad():
            y1 = x1 + scale * self.f(x2)
            y2 = x2 + self.g(y1)
        return torch.cat([y1, y2], dim=2)

    def undo(self, y, dy, scale=1.0):
        y1, y2 = torch.chunk(y, 2, dim=2)
        dy1, dy2 = torch.chunk(dy, 2, dim=2)
        with torch.enable_grad():
            y1 = y1.detach().requires_grad_()
            gy1 = self.g(y1)
            (through,) = torch.autograd.grad(gy1, y1, dy2)
        dx1 = dy1 + through
        with torch.enable_grad():
            x2 = (y2 - gy1).detach().requires_grad_()
            fx2 = scale * self.f(x2)
            (through,) = torch.autograd.grad(fx2, x2, dx1)
        return torch.cat([y1 - fx2, x2], 2).detach(), torch.cat([dx1, dy2 + through], 2)

class Reversible(Function):
    @staticmethod
    def forward(ctx, x, blocks, PASSED):
        for HEAD:
            x = block(x, **kwargs)
        ctx.save_for_backward(x)
        ctx.blocks, ctx.passed = blocks, PASSED
        return x.clone()

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        blocks, PASSED = ctx.blocks, ctx.passed
        for REVERSED:
            y, dy = block.undo(y, dy, **kwargs)
        return dy, None, None
'''
SHARED = {
    "PASSED": "kwargs",
    "HEAD": "block in blocks",
    "REVERSED": "block in blocks[::-1]",
}
ZIPPED = {
    "PASSED": "args",
    "HEAD": "block, kwargs in zip(blocks, args)",
    "REVERSED": "block, kwargs in zip(blocks[::-1], args[::-1])",
}


@pytest.fixture
def load(tmp_path):
    def made(text: str, words: dict[str, str]):
        for word, code in words.items():
            text = text.replace(word, code)
        path = tmp_path / "blocks_under_test.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("blocks_under_test", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["blocks_under_test"] = module
        spec.loader.exec_module(module)
        return module

    yield made
    sys.modules.pop("blocks_under_test", None)


@pytest.mark.parametrize(("words", "passed"), [(SHARED, {}), (ZIPPED, [{}, {}])])
def test_blocks_that_backward_undoes_are_passed(load, words, passed) -> None:
    module = load(REVERSIBLE, words)
    x, blocks, given = infer(from_object(module.Reversible), 0)[0].args
    assert x.dim() >= 3
    assert x.shape[2] % 2 == 0
    assert [type(block) for block in blocks] == [module.Block, module.Block]
    assert blocks[0].f.number != blocks[1].f.number
    assert given == passed


def test_blocks_that_are_undone_in_the_wrong_order_are_found(load) -> None:
    wrong = {**SHARED, "REVERSED": "block in blocks"}
    found = gradlint.check(load(REVERSIBLE, wrong).Reversible, order=1, seed=0, select=["GL401"])
    assert [(item.code, item.input) for item in found.findings] == [("GL401", "x")]
    right = gradlint.check(load(REVERSIBLE, SHARED).Reversible, order=1, seed=0, select=["GL401"])
    assert right.ok
    assert not right.findings


def test_modules_without_the_method_are_not_passed(load) -> None:
    lacking = REVERSIBLE.replace("def undo", "def other")
    with pytest.raises(Exception, match="no usable inputs"):
        infer(from_object(load(lacking, SHARED).Reversible), 0)


def test_a_list_of_tensors_stays_one(load) -> None:
    class Total(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weights):
            for weight in weights:
                x = x * weight.mean()
            ctx.weights = weights
            return x

        @staticmethod
        def backward(ctx, g):
            for weight in ctx.weights:
                g = g * weight.mean()
            return g, None

    weights = infer(from_object(Total), 0)[0].args[1]
    assert all(isinstance(weight, torch.Tensor) for weight in weights)


CHAIN = """
import torch

class Chain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, functions, n, *weights):
        ctx.functions, ctx.n = functions, n
        ctx.save_for_backward(x, *weights)
        with torch.no_grad():
            for place, f in enumerate(functions[:n]):
                x = x + f(x) / (place + 1)
        return x

    @staticmethod
    def backward(ctx, g):
        x, *weights = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            y = x
            for place, f in enumerate(ctx.functions[:ctx.n]):
                y = y + f(y) / (place + 1)
            owned = [p for f in ctx.functions for p in f.parameters()]
            through, *others = torch.autograd.grad(y, (x, *owned), g)
        return THROUGH, None, None, *others
"""


def test_a_list_of_functions_is_made_where_forward_calls_each(load) -> None:
    right = load(CHAIN, {"THROUGH": "through"}).Chain
    sample = infer(from_object(right), 0)[0]
    _, functions, n, *weights = sample.args
    assert len(functions) == len(weights) == 2
    assert all(map(callable, functions))
    assert n > 0
    found = gradlint.check(right, order=1, seed=0, select=["GL401"])
    assert found.ok
    assert not found.findings
    wrong = load(CHAIN, {"THROUGH": "g + 2 * (through - g)"}).Chain
    found = gradlint.check(wrong, order=1, seed=0, select=["GL401"])
    assert [(item.code, item.severity) for item in found.findings] == [("GL401", "warning")]


ALONE = """
import torch

class Alone(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, steps):
        ctx.steps = steps
        ctx.save_for_backward(x)
        for step in reversed(steps):
            x = CALLED
        return x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            x = y = x.detach().requires_grad_()
            for step in reversed(ctx.steps):
                y = WITH_Y
        return torch.autograd.grad(y, x, g)[0], None
"""


def test_functions_without_weights_differ(load) -> None:
    called = {"WITH_Y": "step(y)", "CALLED": "step(x)"}
    first, second = infer(from_object(load(ALONE, called).Alone), 0)[0].args[1]
    x = torch.randn(3, dtype=torch.float64)
    assert not torch.allclose(first(second(x)), second(first(x)))


def test_what_is_multiplied_is_not_called(load) -> None:
    """Near it: a list of numbers or tensors that forward goes through."""
    plain = {"WITH_Y": "step * y", "CALLED": "step * x"}
    steps = infer(from_object(load(ALONE, plain).Alone), 0)[0].args[1]
    assert not any(callable(step) for step in steps)
