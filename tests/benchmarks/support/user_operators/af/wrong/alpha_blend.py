import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def _transmittance(alpha: Tensor) -> Tensor:
    """T (P, G + 1): what is left in front of splat i, and behind all"""
    one = alpha.new_ones(alpha.shape[0], 1)
    return torch.cat([one, torch.cumprod(1 - alpha, 1)], 1)


@torch.library.custom_op("splat_af::alpha_blend", mutates_args=())
def alpha_blend(alpha: Tensor, colour: Tensor, background: Tensor) -> Tensor:
    """Front to back: alpha (P, G) in [0, 1), colour (G, 3), background (3,) -> (P, 3)"""
    T = _transmittance(alpha)
    return (alpha * T[:, :-1]) @ colour + T[:, -1:] * background


def _setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


@once_differentiable
def _backward(ctx, grad):
    alpha, colour, background = ctx.saved_tensors
    T = _transmittance(alpha)
    w = alpha * T[:, :-1]
    g_colour = w.t() @ grad
    g_bg = (T[:, -1:] * grad).sum(0)

    shade = grad @ colour.t()                    # (P, G) gradient . colour
    ws = w * shade
    behind = ws.sum(1, keepdim=True) - ws.cumsum(1)
    g_alpha = T[:, :-1] * shade - behind / (1 - alpha)
    return g_alpha, g_colour, g_bg


alpha_blend.register_autograd(_backward, setup_context=_setup)
