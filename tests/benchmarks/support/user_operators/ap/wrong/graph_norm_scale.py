import torch
from torch import nn


def seg_mean(x, batch, n):
    cnt = x.new_zeros(n).index_add(0, batch, x.new_ones(len(x))).clamp(min=1)
    return (x.new_zeros(n, x.shape[1]).index_add(0, batch, x) / cnt[:, None])[batch]


class _GraphNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, alpha, batch, eps):
        n = int(batch.max()) + 1
        ctx.n, ctx.eps = n, eps
        ctx.save_for_backward(x, weight, alpha, batch)
        d = x - alpha * seg_mean(x, batch, n)
        return weight * d * torch.rsqrt(seg_mean(d * d, batch, n) + eps) + bias

    @staticmethod
    def backward(ctx, g):
        x, weight, alpha, batch = ctx.saved_tensors
        n = ctx.n
        mu = seg_mean(x, batch, n)
        d = x - alpha * mu
        rstd = torch.rsqrt(seg_mean(d * d, batch, n) + ctx.eps)
        xhat = d * rstd
        gh = g * weight
        gd = rstd * (gh - xhat * seg_mean(gh * xhat, batch, n))
        gx = gd - seg_mean(gd, batch, n)
        return gx, (g * xhat).sum(0), g.sum(0), -(gd * mu).sum(0), None, None


class GraphNorm(nn.Module):
    """Graph-wise normalization with a learned share of the mean (Cai et al. 2021). x: (N, C), batch: (N,)"""

    def __init__(self, channels, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.mean_scale = nn.Parameter(torch.ones(channels))

    def forward(self, x, batch):
        return _GraphNorm.apply(x, self.weight, self.bias, self.mean_scale, batch, self.eps)
