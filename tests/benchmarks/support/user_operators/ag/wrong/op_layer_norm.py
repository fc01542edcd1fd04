from typing import Optional, Sequence

import torch


@torch.library.custom_op("normops_v2::layer_norm_nd", mutates_args=())
def layer_norm_nd(x: torch.Tensor, weight: Optional[torch.Tensor], bias: Optional[torch.Tensor], dims: Sequence[int], eps: float) -> torch.Tensor:
    mu = x.mean(dims, keepdim=True)
    var = x.var(dims, unbiased=False, keepdim=True)
    y = (x - mu) * torch.rsqrt(var + eps)
    if weight is not None:
        y = y * weight
    if bias is not None:
        y = y + bias
    return y


@layer_norm_nd.register_fake
def _(x, weight, bias, dims, eps):
    return torch.empty_like(x)


def _save(ctx, inputs, output):
    x, weight, bias, dims, eps = inputs
    ctx.save_for_backward(x, weight)
    ctx.bias_shape = None if bias is None else bias.shape
    ctx.dims, ctx.eps = list(dims), eps


def _grad(ctx, g):
    x, weight = ctx.saved_tensors
    dims = ctx.dims
    mu = x.mean(dims, keepdim=True)
    rstd = torch.rsqrt(x.var(dims, unbiased=False, keepdim=True) + ctx.eps)
    h = (x - mu) * rstd
    gb = None if ctx.bias_shape is None else g.sum_to_size(ctx.bias_shape)
    gw = None
    if weight is not None:
        gw = (g * h).sum_to_size(weight.shape)
        g = g * weight
    gx = rstd * (g - g.mean(-1, keepdim=True) - h * (g * h).mean(-1, keepdim=True))
    return gx, gw, gb, None, None


layer_norm_nd.register_autograd(_grad, setup_context=_save)


def norm_over(x, weight=None, bias=None, dims=(-1,), eps=1e-5):
    """Normalise over `dims`; weight and bias are of x's rank or less and broadcast against it."""
    return layer_norm_nd(x, weight, bias, list(dims), eps)
