import math
import torch
from torch.autograd.function import once_differentiable


class KDELogDensity(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, data, log_h):
        z = (query[:, None] - data[None]) * torch.exp(-log_h)
        e = -0.5 * z ** 2
        ld = e.logsumexp(1)
        ctx.save_for_backward(z, torch.exp(e - ld[:, None]), log_h)
        return ld - log_h - math.log(data.numel() * math.sqrt(2 * math.pi))

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        z, resp, log_h = ctx.saved_tensors
        rz = resp * z
        g_logh = (g * ((rz * z).sum(1) - 1)).sum()
        gz = g[:, None] * rz * torch.exp(-log_h)
        return -gz.sum(1), gz.sum(0), g_logh
