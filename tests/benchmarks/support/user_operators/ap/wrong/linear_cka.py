import torch
from torch import Tensor


@torch.library.custom_op("repsim::linear_cka", mutates_args=())
def _linear_cka(x: Tensor, y: Tensor) -> Tensor:
    x, y = x - x.mean(0), y - y.mean(0)
    return (y.T @ x).square().sum() / ((x.T @ x).norm() * (y.T @ y).norm())


@_linear_cka.register_fake
def _(x, y):
    return x.new_empty(())


def _side(x, y, nx, ny, h):
    g = 2 * y @ (y.T @ x) - h / nx ** 2 * x @ (x.T @ x)
    g = g / (nx * ny)
    return g - g.mean(0)


def _setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward(ctx, grad):
    x, y = ctx.saved_tensors
    x, y = x - x.mean(0), y - y.mean(0)
    nx, ny = (x.T @ x).norm(), (y.T @ y).norm()
    h = (y.T @ x).square().sum()
    gx = gy = None
    if ctx.needs_input_grad[0]:
        gx = grad * _side(x, y, nx, ny, h)
    if ctx.needs_input_grad[1]:
        gy = grad * _side(y, x, ny, nx, h)
    return gx, gy


_linear_cka.register_autograd(_backward, setup_context=_setup)


def linear_cka(x: Tensor, y: Tensor) -> Tensor:
    return torch.ops.repsim.linear_cka(x, y)
