import torch
from torch.autograd.function import once_differentiable


class DeEmphasis(torch.autograd.Function):
    @staticmethod
    def forward(ctx, wav, coef):
        # y[t] = x[t] + c y[t-1]
        y = wav.clone()
        for t in range(1, wav.shape[-1]):
            y[..., t] += coef * y[..., t - 1]
        ctx.save_for_backward(y, coef)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        y, coef = ctx.saved_tensors
        lam = dy.clone(memory_format=torch.contiguous_format)
        for t in range(y.shape[-1] - 2, -1, -1):
            lam[..., t] += coef * lam[..., t + 1]
        dcoef = (lam[..., 1:] * y[..., :-1]).sum()
        return lam, dcoef
