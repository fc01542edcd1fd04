import torch
import torch.nn as nn


class _GhostBN(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, virtual_batch_size, eps):
        ctx.save_for_backward(x, weight)
        ctx.vbs, ctx.eps = virtual_batch_size, eps
        out = []
        for chunk in x.split(virtual_batch_size):
            var, mean = torch.var_mean(chunk, 0, unbiased=False)
            out.append((chunk - mean) * torch.rsqrt(var + eps) * weight + bias)
        return torch.cat(out)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        gx, gw = [], 0
        for chunk, g in zip(x.split(ctx.vbs), grad.split(ctx.vbs)):
            n = min(ctx.vbs, len(x))
            var, mean = torch.var_mean(chunk, 0, unbiased=False)
            rstd = torch.rsqrt(var + ctx.eps)
            xhat = (chunk - mean) * rstd
            gw = gw + (g * xhat).sum(0)
            gh = g * weight
            gx.append(rstd * (gh - gh.sum(0) / n - xhat * (gh * xhat).sum(0) / n))
        return torch.cat(gx), gw, grad.sum(0), None, None


class GhostBatchNorm1d(nn.Module):
    """Batch norm (training statistics) over virtual batches, as in TabNet; the last may be smaller."""

    def __init__(self, num_features, virtual_batch_size=128, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.virtual_batch_size = virtual_batch_size
        self.eps = eps

    def forward(self, x):
        if x.dim() != 2 or x.shape[1] != len(self.weight):
            raise ValueError("expected (batch, num_features)")
        return _GhostBN.apply(x, self.weight, self.bias, self.virtual_batch_size, self.eps)
