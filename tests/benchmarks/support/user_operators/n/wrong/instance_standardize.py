import torch
from torch.autograd.function import once_differentiable


class InstanceStandardize(torch.autograd.Function):
    """(x - mean) / std over the spatial dims of (N, C, *), with the statistics returned as well.

    unbiased: Bessel's correction, as torch.std has it.
    Returns y, mean (N, C), std (N, C); all three carry gradients.
    """

    @staticmethod
    def forward(ctx, x: torch.Tensor, eps: float = 1e-5, unbiased: bool = False):
        n = x[0, 0].numel()
        flat = x.reshape(x.size(0), x.size(1), n)
        mean = flat.mean(-1)
        centred = flat - mean.unsqueeze(-1)
        dof = n - 1 if unbiased else n
        std = (centred.pow(2).sum(-1) / dof + eps).sqrt()
        y = centred / std.unsqueeze(-1)
        ctx.save_for_backward(y, std)
        ctx.dof = dof
        return y.view(x.shape), mean, std

    @staticmethod
    @once_differentiable
    def backward(ctx, gy, gmean, gstd):
        y, std = ctx.saved_tensors
        n = y.size(-1)
        g = gy.reshape(y.shape)
        gs = gstd - (g * y).sum(-1) / std
        gx = g / std.unsqueeze(-1)
        gx = gx + gs.unsqueeze(-1) * y / n
        gx = gx - gx.mean(-1, keepdim=True)
        gx = gx + gmean.unsqueeze(-1) / n
        return gx.view(gy.shape), None, None
