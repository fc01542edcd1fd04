import torch
from torch import nn


class _GroupDequant(torch.autograd.Function):
    """codes (O, I) int, scale and zero (O, I // group) -> weights (O, I)"""

    @staticmethod
    def forward(ctx, codes, scale, zero, group):
        ctx.save_for_backward(codes, scale, zero)
        ctx.group = group
        q = codes.to(scale.dtype).unflatten(1, (-1, group))
        if zero is not None:
            q = q - zero.unsqueeze(-1)
        return (q * scale.unsqueeze(-1)).flatten(1)

    @staticmethod
    def backward(ctx, g):
        codes, scale, zero = ctx.saved_tensors
        g = g.unflatten(1, (-1, ctx.group))
        q = codes.to(scale.dtype).unflatten(1, (-1, ctx.group))
        g_zero = None
        if zero is not None:
            q = q - zero.unsqueeze(-1)
            g_zero = -(g.sum(-1) * scale)
        return None, (g * q).sum(-1), g_zero, None


class DequantLinear(nn.Module):
    """Linear layer on stored integer codes, whose group scales (and zeros) are tuned."""

    def __init__(self, fan_in, fan_out, group=32, asymmetric=False, bits=4):
        super().__init__()
        if fan_in % group:
            raise ValueError("group must divide fan_in")
        span = 2 ** bits
        codes = (torch.arange(fan_out * fan_in).reshape(fan_out, fan_in) * 7 + 3) % span - (0 if asymmetric else span // 2)
        self.register_buffer("codes", codes.to(torch.int8))
        self.scale = nn.Parameter(torch.full((fan_out, fan_in // group), 1.0 / span))
        self.zero = nn.Parameter(torch.full((fan_out, fan_in // group), span / 2.0)) if asymmetric else None
        self.group = group

    def forward(self, x):
        return x @ _GroupDequant.apply(self.codes, self.scale, self.zero, self.group).t()
