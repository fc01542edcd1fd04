import torch
from torch import Tensor


@torch.library.custom_op("yops::kmax_pool", mutates_args=())
def _kmax(x: Tensor, k: int) -> Tensor:
    idx = x.topk(k, dim=-1).indices.sort(dim=-1).values
    return x.gather(-1, idx)


@_kmax.register_fake
def _(x, k):
    return x.new_empty(*x.shape[:-1], k)


def _setup_context(ctx, inputs, output):
    x, k = inputs
    ctx.k = k
    ctx.save_for_backward(x)


def _backward(ctx, grad):
    (x,) = ctx.saved_tensors
    idx = x.topk(ctx.k, dim=-1).indices.sort(dim=-1).values
    return torch.zeros_like(x).scatter(-1, idx, grad), None


_kmax.register_autograd(_backward, setup_context=_setup_context)


def kmax_pool(x: Tensor, k: int, dim: int = -1) -> Tensor:
    """The k largest along an axis in their original order (DCNN)."""
    return torch.ops.yops.kmax_pool(x.movedim(dim, -1), k).movedim(-1, dim)
