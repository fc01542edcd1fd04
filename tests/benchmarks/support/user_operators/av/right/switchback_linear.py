import torch
from torch import Tensor


def _q8(x: Tensor, dim: int | None) -> Tensor:
    amax = x.abs().amax() if dim is None else x.abs().amax(dim, keepdim=True)
    s = amax.clamp_min(1e-12) / 127
    return torch.round(x / s) * s


class SwitchbackLinear(torch.autograd.Function):
    """SwitchBack: int8 forward (row-wise x, tensor-wise weight), unquantised backward.

    Straight-through on purpose: the gradient is that of x @ weight.T + bias.
    x (..., I), weight (O, I), bias (O,) or None
    """

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.has_bias = bias is not None
        y = _q8(x, -1) @ _q8(weight, None).T
        return y if bias is None else y + bias

    @staticmethod
    def backward(ctx, g: Tensor):
        x, weight = ctx.saved_tensors
        gf, xf = g.reshape(-1, g.size(-1)), x.reshape(-1, x.size(-1))
        if not ctx.has_bias:
            return g @ weight, gf.T @ xf, None
        return g @ weight, gf.T @ xf, gf.sum(0)
