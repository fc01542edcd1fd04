import uuid

import torch
from torch import Tensor

_NS = f"segops_{uuid.uuid4().hex}"


@torch.library.custom_op(_NS + "::logsumexp", mutates_args=())
def segment_logsumexp(x: Tensor, segment: Tensor, num: int) -> Tensor:
    """logsumexp of the entries of x (N,) that share a segment id (N,), none of them empty."""
    top = torch.full((num,), -torch.inf, dtype=x.dtype, device=x.device)
    top = top.scatter_reduce(0, segment, x, "amax")
    total = torch.zeros_like(top).index_add(0, segment, (x - top[segment]).exp())
    return top + total.log()


@segment_logsumexp.register_fake
def _(x, segment, num):
    return x.new_empty(num)


def _setup(ctx, inputs, output):
    x, segment, _ = inputs
    ctx.save_for_backward(x, segment, output)


def _backward(ctx, g):
    x, segment, out = ctx.saved_tensors
    return g[segment] * torch.exp(x - out[segment]), None, None


segment_logsumexp.register_autograd(_backward, setup_context=_setup)
