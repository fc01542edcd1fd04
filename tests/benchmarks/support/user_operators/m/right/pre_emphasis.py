import torch
from torch import nn


class _PreEmphasisFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, waveform, coef):
        ctx.save_for_backward(waveform, coef)
        out = waveform.clone()
        out[..., 1:] -= coef * waveform[..., :-1]
        return out

    @staticmethod
    def backward(ctx, grad_output):
        waveform, coef = ctx.saved_tensors
        ahead = torch.nn.functional.pad(grad_output[..., 1:], (0, 1))
        grad_waveform = grad_output - coef * ahead
        grad_coef = -(grad_output[..., 1:] * waveform[..., :-1]).sum()
        return grad_waveform, grad_coef


class PreEmphasis(nn.Module):
    """First-order high-pass ``y[t] = x[t] - coef * x[t-1]`` with a learnable coefficient.

    The first sample is passed through. Input: ``(..., time)``.
    """

    def __init__(self, coef: float = 0.97):
        super().__init__()
        self.coef = nn.Parameter(torch.tensor(coef))

    def forward(self, waveform):
        return _PreEmphasisFn.apply(waveform, self.coef)
