import torch
from torch import Tensor

ALPHA = 1.702


@torch.library.custom_op("vit_ops_ae_v2::bias_quick_gelu", mutates_args=())
def bias_quick_gelu(x: Tensor, bias: Tensor) -> Tensor:
    """quick GELU of x + bias; x: (..., D), bias: (D,)"""
    z = x + bias
    return z * torch.sigmoid(ALPHA * z)


@bias_quick_gelu.register_fake
def _(x, bias):
    return torch.empty_like(x)


def _setup(ctx, inputs, output):
    x, bias = inputs
    ctx.save_for_backward(x.to(torch.bfloat16), bias)


def _backward(ctx, grad):
    x, bias = ctx.saved_tensors
    z = x.to(grad.dtype) + bias
    s = torch.sigmoid(ALPHA * z)
    dz = grad * (s + ALPHA * z * s * (1 - s))
    lead = dz.dim() - bias.dim()
    return dz, dz.sum(tuple(range(lead))) if lead else dz.clone()


bias_quick_gelu.register_autograd(_backward, setup_context=_setup)
