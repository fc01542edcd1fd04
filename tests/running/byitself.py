"""Right operators that might look wrong, or can't run at all, in a process of their own."""

from __future__ import annotations

import functools
import gc
import random
from pathlib import Path

import torch

#: Differs from process to process.
OWN = torch.Generator()
OWN.seed()
SCALE = 1.0 + float(torch.rand((), generator=OWN, dtype=torch.float64))

TEXT = Path(__file__).read_text()


def _x(*shape):
    values = torch.linspace(0.5, 2.0, max(1, torch.Size(shape).numel()), dtype=torch.float64)
    return values.reshape(shape).requires_grad_()


COUNTED = torch.Generator().manual_seed(1)


def own_numbers(x):
    """Draws from a generator of its own, which starts the same in every process."""
    return x * (1.0 + float(torch.rand((), generator=COUNTED, dtype=torch.float64)))


own_numbers.sample_inputs = lambda: (_x(3),)


def own_noise(x):
    """Draws from a generator of its own, which starts anywhere."""
    return x * (1.0 + float(torch.rand((), generator=OWN, dtype=torch.float64)))


own_noise.sample_inputs = lambda: (_x(3),)


class _Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2


class Dropout(torch.nn.Module):
    def __init__(self, p: float = 0.5):
        super().__init__()
        self.p = p

    def forward(self, x):
        return torch.nn.functional.dropout(x, self.p)

    @staticmethod
    def sample_inputs():
        return (_x(4, 3),)


def numbers_of_python(x):
    return x * (1.0 + random.random())


numbers_of_python.sample_inputs = lambda: (_x(3),)


def drawn_on_import(x):
    return torch.sin(x) * SCALE


drawn_on_import.sample_inputs = lambda: (_x(3),)


def in_shared_memory(x):
    """Runs where looking for garbage leaves alone what torch is made of."""
    if gc.get_freeze_count() < 50_000:
        raise RuntimeError(f"{gc.get_freeze_count()} objects are left alone")
    return torch.sin(x)


in_shared_memory.sample_inputs = lambda: (_x(3),)


class Normed(torch.nn.Module):
    """Batch norm that is trained: its buffers change."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.norm(x) * min(self.calls, 2)

    @staticmethod
    def sample_inputs():
        return (_x(5, 3),)


class Picks(torch.nn.Module):
    """Made of a tensor that gradlint chooses."""

    def __init__(self, indices):
        super().__init__()
        self.register_buffer("indices", indices)

    def forward(self, x):
        return x[self.indices].square()

    @staticmethod
    def sample_inputs():
        return (_x(9),)


class Converged(torch.nn.Module):
    """A weight divided by its largest singular value, which one iteration a call keeps up to date:
    right where it has converged, and a little off wherever the weight is moved."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 3))
        self.register_buffer("v", torch.ones(3) / 3**0.5)
        self._iterate(50)

    @torch.no_grad()
    def _iterate(self, count):
        for _ in range(count):
            v = self.weight.mT @ (self.weight @ self.v)
            self.v.copy_(v / v.norm())

    def forward(self, x):
        self._iterate(1)
        v = self.v.clone()
        u = self.weight.detach() @ v
        largest = (u / u.norm()) @ self.weight @ v
        return x @ (self.weight / largest).mT

    @staticmethod
    def sample_inputs():
        return (_x(2, 3),)


class _Scaled(torch.nn.Module):
    def __init__(self, features, *, bias):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(features))
        self.bias = torch.nn.Parameter(torch.randn(features)) if bias else None
        self.register_buffer("factor", torch.rand(features))

    def forward(self, x):
        return x * self.weight * self.factor + self.bias

    @staticmethod
    def sample_inputs():
        return (_x(2, 3),)


instance = _Scaled(3, bias=True)
evaluated = torch.nn.BatchNorm1d(3).eval()
evaluated.sample_inputs = lambda: (_x(5, 3),)
partly = functools.partial(_Scaled, 3, bias=True)


class Nested:
    """Many kinds of argument."""

    def __call__(self, xs, index, scale, dtype, options=()):
        rows = (xs[0] * scale + xs[1]["inner"]).to(dtype)
        return {"rows": rows[index], "size": len(index)}, rows.sum()

    @staticmethod
    def sample_inputs():
        index = torch.tensor([2, 0])
        return {
            "nested": ([_x(3), {"inner": _x(3)}], index, 2.5, torch.float64, ("a", None)),
        }


class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2

    @staticmethod
    def sample_inputs():
        return (_x(3),)


class RoundedInside(torch.autograd.Function):
    """Computes with what bfloat16 keeps of x: differences in x are steps, by itself as well."""

    @staticmethod
    def forward(ctx, x, y):
        x = x.bfloat16().to(x.dtype)
        ctx.save_for_backward(x, y)
        return x.sin() * y.cos()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * x.cos() * y.cos(), -g * x.sin() * y.sin()

    @staticmethod
    def sample_inputs():
        generator = torch.Generator().manual_seed(0)
        return tuple(
            torch.randn(3, 4, generator=generator, dtype=torch.float64).requires_grad_()
            for _ in range(2)
        )


class Narrow(torch.autograd.Function):
    """Takes float32 only."""

    @staticmethod
    def forward(ctx, x):
        if x.dtype != torch.float32:
            raise TypeError("float32 only")
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2

    @staticmethod
    def sample_inputs():
        return (torch.linspace(0.5, 2.0, 3).requires_grad_(),)


class HalfComplex(torch.autograd.Function):
    """Returns complex numbers of 16 bits, which PyTorch does not even compare."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x.chalf()

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output.to(torch.complex64).real.double()

    @staticmethod
    def sample_inputs():
        return (_x(3),)


class TakesObject(_Double):
    """An argument that is no plain data."""

    @staticmethod
    def forward(ctx, x, path):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2, None

    @staticmethod
    def sample_inputs():
        return (_x(3), Path("."))


class NeedsItsPlace(_Double):
    """Works only in its own folder, which it asks for when it is called."""

    @staticmethod
    def forward(ctx, x):
        assert Path(__file__).with_name("meddling.py").exists()
        return x * 2

    @staticmethod
    def sample_inputs():
        return (_x(3),)


class NeedsItsName(_Double):
    @staticmethod
    def forward(ctx, x):
        if __name__ != "byitself":
            raise RuntimeError("another name")
        return x * 2

    @staticmethod
    def sample_inputs():
        return (_x(3),)


@torch.library.custom_op("byitself::double", mutates_args=())
def registered(x: torch.Tensor) -> torch.Tensor:
    return x * 2


registered.register_autograd(lambda ctx, grad_output: grad_output * 2)
