import math

import torch


class StudentTLogProb(torch.autograd.Function):
    """log density of the location-scale Student t; all four arguments broadcast."""

    @staticmethod
    def forward(ctx, x, df, loc, scale):
        ctx.save_for_backward(x, df, loc, scale)
        y = (x - loc) / scale
        norm = torch.lgamma(0.5 * (df + 1)) - torch.lgamma(0.5 * df) - 0.5 * torch.log(math.pi * df) - scale.log()
        return norm - 0.5 * (df + 1) * torch.log1p(y * y / df)

    @staticmethod
    def backward(ctx, g):
        x, df, loc, scale = ctx.saved_tensors
        y = (x - loc) / scale
        y2 = y * y
        pull = (df + 1) * y / (df + y2)
        gx = -g * pull / scale
        gscale = g * (pull * y - 1) / scale
        gdf = torch.digamma(0.5 * (df + 1)) - torch.digamma(0.5 * df) - 1 / df
        gdf = gdf - torch.log1p(y2 / df) + (df + 1) * y2 / (df * (df + y2))
        gdf = 0.5 * g * gdf
        return (
            gx.sum_to_size(x.shape),
            gdf.sum_to_size(df.shape),
            (-gx).sum_to_size(loc.shape),
            gscale.sum_to_size(scale.shape),
        )
