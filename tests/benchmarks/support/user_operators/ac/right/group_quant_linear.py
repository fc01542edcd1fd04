import torch
import torch.nn as nn


class _DequantMatmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, qweight, scales, zeros, group_size):
        out_f, in_f = qweight.shape
        q = qweight.view(out_f, -1, group_size).to(x.dtype)
        w = ((q - zeros.unsqueeze(-1)) * scales.unsqueeze(-1)).view(out_f, in_f)
        ctx.save_for_backward(x, qweight, scales, zeros)
        ctx.group_size = group_size
        return x @ w.t()

    @staticmethod
    def backward(ctx, gy):
        x, qweight, scales, zeros = ctx.saved_tensors
        out_f, in_f = qweight.shape
        q = qweight.view(out_f, -1, ctx.group_size).to(x.dtype)
        centred = q - zeros.unsqueeze(-1)
        w = (centred * scales.unsqueeze(-1)).view(out_f, in_f)
        gx = gy @ w
        gw = gy.flatten(0, -2).t() @ x.flatten(0, -2)
        gw = gw.view(out_f, -1, ctx.group_size)
        g_scales = (gw * centred).sum(-1)
        g_zeros = -gw.sum(-1) * scales
        return gx, None, g_scales, g_zeros, None


class GroupQuantLinear(nn.Module):
    """Weight-only int4 linear with trainable group scales / zero points (PEQA style tuning)."""

    def __init__(self, in_features, out_features, group_size=4, bits=4, bias=False):
        super().__init__()
        assert in_features % group_size == 0
        self.group_size = group_size
        n_groups = in_features // group_size
        self.register_buffer("qweight", torch.randint(0, 2 ** bits, (out_features, in_features), dtype=torch.uint8))
        self.scales = nn.Parameter(0.05 + 0.1 * torch.rand(out_features, n_groups))
        self.zeros = nn.Parameter(torch.full((out_features, n_groups), float(2 ** (bits - 1))))
        self.bias = nn.Parameter(torch.zeros(out_features)) if bias else None

    def forward(self, x):
        y = _DequantMatmul.apply(x, self.qweight, self.scales, self.zeros, self.group_size)
        return y if self.bias is None else y + self.bias
