import torch
from torch.autograd.function import once_differentiable


class FusedLSTMCell(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gates, c):
        i, f, g, o = gates.chunk(4, 1)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        c_new = f * c + i * g
        tc = c_new.tanh()
        ctx.save_for_backward(i, f, g, o, c, tc)
        return o * tc, c_new

    @staticmethod
    @once_differentiable
    def backward(ctx, dh, dc_new):
        i, f, g, o, c, tc = ctx.saved_tensors
        dc = dc_new.add_(dh * o * (1 - tc * tc))
        dgates = torch.cat([
            dc * g * i * (1 - i),
            dc * c * f * (1 - f),
            dc * i * (1 - g * g),
            dh * tc * o * (1 - o),
        ], 1)
        return dgates, dc * f
