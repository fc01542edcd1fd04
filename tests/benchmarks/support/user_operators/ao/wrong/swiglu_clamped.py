import torch
from torch import Tensor


@torch.library.custom_op("moe_fused::swiglu_interleaved", mutates_args=())
def swiglu_interleaved(x: Tensor, alpha: float = 1.702, limit: float = 7.0) -> Tensor:
    gate = x[..., ::2].clamp(max=limit)
    up = x[..., 1::2].clamp(-limit, limit)
    return (up + 1) * gate * torch.sigmoid(alpha * gate)


@swiglu_interleaved.register_fake
def _(x, alpha=1.702, limit=7.0):
    return x.new_empty(*x.shape[:-1], x.shape[-1] // 2)


def setup_context(ctx, inputs, output):
    x, ctx.alpha, ctx.limit = inputs
    ctx.save_for_backward(x)


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    alpha, limit = ctx.alpha, ctx.limit
    raw_gate, raw_up = x[..., ::2], x[..., 1::2]
    gate, up = raw_gate.clamp(max=limit), raw_up.clamp(-limit, limit)
    s = torch.sigmoid(alpha * gate)
    d_gate = grad * (up + 1) * s * (1 + alpha * gate * (1 - s))
    d_up = grad * gate * s
    d_gate = d_gate.masked_fill(raw_gate > limit, 0)
    d_up = d_up.masked_fill(raw_up > limit, 0)
    return torch.stack([d_gate, d_up], -1).flatten(-2), None, None


swiglu_interleaved.register_autograd(backward, setup_context=setup_context)
