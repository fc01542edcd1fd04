import torch
import torch.nn as nn


class ShiftFunction(torch.autograd.Function):
    """First fold of channels comes from the next frame, second fold from the previous one."""

    @staticmethod
    def forward(ctx, x, n_segment, fold):
        nt, c, h, w = x.size()
        ctx.n_segment, ctx.fold = n_segment, fold
        v = x.reshape(nt // n_segment, n_segment, c, h, w)
        out = torch.zeros_like(v, memory_format=torch.contiguous_format)
        out[:, :-1, :fold] = v[:, 1:, :fold]
        out[:, 1:, fold:2 * fold] = v[:, :-1, fold:2 * fold]
        out[:, :, 2 * fold:] = v[:, :, 2 * fold:]
        return out.view(nt, c, h, w)

    @staticmethod
    def backward(ctx, grad):
        nt, c, h, w = grad.size()
        t, fold = ctx.n_segment, ctx.fold
        frame = c * h * w
        v = torch.as_strided(grad, (nt // t, t, c, h * w), (t * frame, frame, h * w, 1))
        zero = torch.zeros_like(v[:, :1])
        fwd = torch.cat([zero, v[:, :-1]], 1)[:, :, :fold]
        bwd = torch.cat([v[:, 1:], zero], 1)[:, :, fold:2 * fold]
        out = torch.cat([fwd, bwd, v[:, :, 2 * fold:]], 2)
        return out.reshape(nt, c, h, w), None, None


class TemporalShift(nn.Module):
    def __init__(self, net, n_segment=3, n_div=8):
        super().__init__()
        self.net = net
        self.n_segment = n_segment
        self.fold_div = n_div

    def forward(self, x):
        if x.size(0) % self.n_segment:
            raise ValueError("batch is no multiple of n_segment")
        x = ShiftFunction.apply(x, self.n_segment, x.size(1) // self.fold_div)
        return self.net(x)
