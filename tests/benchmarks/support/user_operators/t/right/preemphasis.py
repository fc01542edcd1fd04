import torch
import torch.nn as nn
import torch.nn.functional as F


class _PreEmph(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, coef):
        ctx.save_for_backward(x, coef)
        return x - coef * F.pad(x[..., :-1], (1, 0))

    @staticmethod
    def backward(ctx, grad):
        x, coef = ctx.saved_tensors
        gx = gc = None
        if ctx.needs_input_grad[0]:
            gx = grad - coef * F.pad(grad[..., 1:], (0, 1))
        if ctx.needs_input_grad[1]:
            gc = -(grad[..., 1:] * x[..., :-1]).sum()
        return gx, gc


class PreEmphasis(nn.Module):
    def __init__(self, coef=0.97):
        super().__init__()
        self.coef = nn.Parameter(torch.tensor(coef))

    def forward(self, wav):
        return _PreEmph.apply(wav, self.coef)
