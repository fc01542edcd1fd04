import torch
from torch import Tensor


@torch.library.custom_op("megatron_ops_ae_v2::scaled_masked_softmax", mutates_args=())
def scaled_masked_softmax(x: Tensor, mask: Tensor, scale: float) -> Tensor:
    """softmax(scale * x) over the last axis; positions with a true mask get no probability.

    x: (B, H, Q, K); mask: broadcastable to x. Rows that are masked throughout become zeros.
    """
    z = (x * scale).masked_fill(mask, float("-inf"))
    p = torch.softmax(z, dim=-1)
    return p.masked_fill(mask.expand_as(x).all(-1, keepdim=True), 0.0)


@scaled_masked_softmax.register_fake
def _(x, mask, scale):
    return torch.empty_like(x)


def _setup_context(ctx, inputs, output):
    ctx.save_for_backward(output)
    ctx.scale = inputs[2]


def _softmax_backward(ctx, grad):
    (p,) = ctx.saved_tensors
    gp = grad * p
    gx = gp - p * gp.sum(-1, keepdim=True)
    return gx * ctx.scale, None, None


scaled_masked_softmax.register_autograd(_softmax_backward, setup_context=_setup_context)
