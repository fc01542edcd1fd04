import math

import torch
from torch import nn


class _StudentT(torch.autograd.Function):
    @staticmethod
    def forward(ctx, res, log_scale, log_df):
        ctx.save_for_backward(res, log_scale, log_df)
        df, z2 = log_df.exp(), (res * (-log_scale).exp()).square()
        norm = torch.lgamma(df / 2) - torch.lgamma((df + 1) / 2) + 0.5 * (df * math.pi).log()
        return norm + log_scale + (df + 1) / 2 * torch.log1p(z2 / df)

    @staticmethod
    def backward(ctx, g):
        res, log_scale, log_df = ctx.saved_tensors
        df, inv = log_df.exp(), (-log_scale).exp()
        z = res * inv
        z2 = z.square()
        w = (df + 1) / (df + z2)
        g_res = g * w * z * inv
        g_scale = g * (1 - w * z2)
        d_df = 0.5 * (torch.digamma(df / 2) - torch.digamma((df + 1) / 2) + 1 / df + torch.log1p(z2 / df) - w * z2 / df)
        g_df = g * d_df
        return g_res, g_scale.sum_to_size(log_scale.shape), g_df.sum_to_size(log_df.shape)


class StudentTLoss(nn.Module):
    """Robust regression with learned scale and degrees of freedom per target.

    residual: (N, D); valid: (N,) bool or None.
    """

    def __init__(self, dim, reduction="mean"):
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(dim))
        self.log_df = nn.Parameter(torch.full((dim,), 1.5))
        self.reduction = reduction

    def forward(self, residual, valid=None):
        nll = _StudentT.apply(residual, self.log_scale, self.log_df)
        if valid is not None:
            nll = nll[valid]
        return nll.mean() if self.reduction == "mean" else nll.sum()
