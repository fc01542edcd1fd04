import torch
from torch import Tensor

NAMESPACE = __name__.split(".")[-1]


def _terms(x):
    m = x.amax(-1, keepdim=True)
    return torch.exp(x - m), torch.exp(-m)


@torch.library.custom_op(f"{NAMESPACE}::softpick", mutates_args=())
def softpick(x: Tensor, eps: float = 1e-6) -> Tensor:
    """relu(exp(x) - 1) / (sum |exp(x) - 1| + eps) over the last dim"""
    e, one = _terms(x)
    return (e - one).relu() / ((e - one).abs().sum(-1, keepdim=True) + eps * one)


@softpick.register_fake
def _(x, eps=1e-6):
    return torch.empty_like(x)


def _setup(ctx, inputs, output):
    x, ctx.eps = inputs
    ctx.save_for_backward(x)


def _backward(ctx, dy):
    x, = ctx.saved_tensors
    e, one = _terms(x)
    den = (e - one).abs().sum(-1, keepdim=True) + ctx.eps * one
    y = (e - one).relu() / den
    dot = (dy * y).sum(-1, keepdim=True)
    return e / den * ((x > 0) * dy - torch.sign(x) * dot), None


softpick.register_autograd(_backward, setup_context=_setup)
