import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _MeanStd(torch.autograd.Function):
    @staticmethod
    def forward(ctx, msg, dst, num, eps):
        deg = msg.new_zeros(num).index_add_(0, dst, torch.ones_like(msg[:, 0])).clamp(min=1)[:, None]
        mean = msg.new_zeros(num, msg.shape[1]).index_add_(0, dst, msg) / deg
        off = msg - mean[dst]
        var = torch.zeros_like(mean).index_add_(0, dst, off * off) / deg
        std = (var + eps).sqrt()
        ctx.save_for_backward(dst, deg, off, std)
        return mean, std

    @staticmethod
    @once_differentiable
    def backward(ctx, g_mean, g_std):
        dst, deg, off, std = ctx.saved_tensors
        g = (g_mean / deg)[dst] + (g_std / (std * deg))[dst] * off
        return g, None, None, None


class MeanStdAggregate(nn.Module):
    # messages (E, C), dst (E,), number of nodes -> (nodes, out)
    def __init__(self, channels, out, eps=1e-5):
        super().__init__()
        self.lin = nn.Linear(2 * channels, out)
        self.eps = eps

    def forward(self, msg, dst, num):
        return self.lin(torch.cat(_MeanStd.apply(msg, dst, num, self.eps), 1))
