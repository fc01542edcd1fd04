import torch
from torch import Tensor


@torch.library.custom_op("zops::packed_swiglu", mutates_args=())
def swiglu_packed(x: Tensor, beta: float = 1.0, limit: float = 0.0) -> Tensor:
    """x (..., 2n) holds the gate and then the value; the value is clamped to +-limit if that is positive."""
    gate, value = x.chunk(2, -1)
    if limit > 0:
        value = value.clamp(-limit, limit)
    return gate * torch.sigmoid(beta * gate) * value


@swiglu_packed.register_fake
def _(x, beta=1.0, limit=0.0):
    return x.new_empty(*x.shape[:-1], x.shape[-1] // 2)


def setup_context(ctx, inputs, output):
    x, ctx.beta, ctx.limit = inputs
    ctx.save_for_backward(x)


def backward(ctx, g):
    (x,) = ctx.saved_tensors
    gate, value = x.chunk(2, -1)
    s = torch.sigmoid(ctx.beta * gate)
    g_value = g * gate * s
    if ctx.limit > 0:
        value = value.clamp(-ctx.limit, ctx.limit)
    g_gate = g * value * s * (1 + ctx.beta * gate * (1 - s))
    return torch.cat([g_gate, g_value], -1), None, None


swiglu_packed.register_autograd(backward, setup_context=setup_context)
