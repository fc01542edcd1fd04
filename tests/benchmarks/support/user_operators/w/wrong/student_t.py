import math

import torch


class StudentTLogProb(torch.autograd.Function):
    """log p(x; df, loc, scale).  The parameters broadcast against x; df, scale > 0."""

    @staticmethod
    def forward(ctx, x, df, loc, scale):
        ctx.save_for_backward(x, df, loc, scale)
        z = (x - loc) / scale
        return (torch.lgamma((df + 1) / 2) - torch.lgamma(df / 2) - 0.5 * torch.log(df * math.pi)
                - torch.log(scale) - (df + 1) / 2 * torch.log1p(z * z / df))

    @staticmethod
    def backward(ctx, g):
        x, df, loc, scale = ctx.saved_tensors
        z = (x - loc) / scale
        q = (df + 1) * z / (df + z * z)
        gx = -g * q / scale
        gscale = g * (q * z - 1) / scale
        gdf = 0.5 * g * (torch.digamma((df + 1) / 2) - torch.digamma(df / 2)
                         - torch.log1p(z * z / df) + q * z / df)
        return gx, gdf.sum_to_size(df.shape), (-gx).sum_to_size(loc.shape), gscale.sum_to_size(scale.shape)
