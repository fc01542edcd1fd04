"""Small distinct autograd Functions, written out as modules of ten: what a package might hold.

Four kinds take turns: elementwise, two inputs, matrix products, reductions. Numbers inside make
each one differ from the others, so that no cache can answer for two.
"""

from __future__ import annotations

from pathlib import Path

HEADER = """\
import torch
from torch.autograd import Function
"""

ELEMENTWISE = '''

class {name}(Function):
    """y = tanh({a} x)."""

    @staticmethod
    def forward(ctx, x):
        y = torch.tanh({a} * x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return {a} * (1 - y * y) * grad_output
'''

TWO_INPUTS = '''

class {name}(Function):
    """z = sin({a} x) y."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return torch.sin({a} * x) * y

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return {a} * torch.cos({a} * x) * y * grad_output, torch.sin({a} * x) * grad_output
'''

MATMUL = '''

class {name}(Function):
    """Y = {a} X Wᵀ + b."""

    @staticmethod
    def forward(ctx, input, weight, bias):
        ctx.save_for_backward(input, weight)
        return {a} * (input @ weight.mT) + bias

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        grad = {a} * grad_output
        return grad @ weight, grad.mT @ input, grad_output.sum(0)
'''

REDUCTION = '''

class {name}(Function):
    """s = Σ x² / {a} along the last axis."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x).sum(-1) / {a}

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output.unsqueeze(-1) / {a}
'''

KINDS = (ELEMENTWISE, TWO_INPUTS, MATMUL, REDUCTION)
PER_FILE = 10


def write_functions(folder: Path, count: int) -> None:
    """Write ``count`` Functions into ``folder``, all right, :data:`PER_FILE` a module."""
    for start in range(0, count, PER_FILE):
        parts = [HEADER]
        for number in range(start, min(start + PER_FILE, count)):
            kind = KINDS[number % len(KINDS)]
            parts.append(kind.format(name=f"Op{number}", a=f"{0.5 + number / 100:.2f}"))
        (folder / f"ops_{start // PER_FILE}.py").write_text("".join(parts), encoding="utf-8")
