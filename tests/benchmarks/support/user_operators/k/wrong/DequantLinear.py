"""Linear layer on group-quantised weights (GPTQ layout, unpacked)."""
from typing import Optional

import torch
from torch import Tensor
from torch.autograd import Function


def _dequantize(codes: Tensor, scale: Tensor, zero: Tensor) -> Tensor:
    out, groups = scale.shape
    q = codes.reshape(out, groups, -1).to(scale.dtype)
    return ((q - zero.unsqueeze(-1)) * scale.unsqueeze(-1)).view(out, -1)


class DequantLinear(Function):
    """y = x W^T + bias with W = (codes - zero) * scale, group by group.

    Args:
        x: (..., in)
        codes: integer codes (out, in)
        scale, zero: (out, groups), where groups divides in; zero points are real numbers
        bias: (out,) or None
    """

    @staticmethod
    def forward(ctx, x: Tensor, codes: Tensor, scale: Tensor, zero: Tensor, bias: Optional[Tensor] = None):
        if codes.is_floating_point():
            raise TypeError("codes must be integers")
        if codes.size(1) % scale.size(1):
            raise ValueError("the groups must divide the number of inputs")
        ctx.save_for_backward(x, codes, scale, zero)
        ctx.has_bias = bias is not None
        y = x @ _dequantize(codes, scale, zero).t()
        return y if bias is None else y + bias

    @staticmethod
    def backward(ctx, g: Tensor):
        x, codes, scale, zero = ctx.saved_tensors
        out, groups = scale.shape
        gx = gs = gz = gb = None
        if ctx.needs_input_grad[0]:
            gx = g @ _dequantize(codes, scale, zero)
        if ctx.needs_input_grad[2] or ctx.needs_input_grad[3]:
            gW = g.reshape(-1, out).t() @ x.reshape(-1, x.size(-1))
            gW = gW.view(out, groups, -1)
            q = codes.reshape(out, groups, -1).to(scale.dtype)
            gs = (gW * (q - zero.unsqueeze(-1))).sum(-1)
            gz = -gW.sum(-1)
        if ctx.has_bias and ctx.needs_input_grad[4]:
            gb = g.reshape(-1, out).sum(0)
        return gx, None, gs, gz, gb
