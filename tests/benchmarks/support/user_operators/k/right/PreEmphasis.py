import torch
import torch.nn as nn


class _PreEmphasisFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(x, a)
        prev = torch.cat((x[..., :1], x[..., :-1]), dim=-1)
        return x - a * prev

    @staticmethod
    def backward(ctx, g):
        x, a = ctx.saved_tensors
        gx = ga = None
        if ctx.needs_input_grad[0]:
            gx = g - a * torch.cat((g[..., 1:], torch.zeros_like(g[..., :1])), dim=-1)
            first = torch.zeros_like(g)
            first[..., 0] = 1.0
            gx = gx - a * g * first
        if ctx.needs_input_grad[1]:
            prev = torch.cat((x[..., :1], x[..., :-1]), dim=-1)
            ga = -(g * prev).sum()
        return gx, ga


class PreEmphasis(nn.Module):
    """y[t] = x[t] - a x[t-1] with x[-1] = x[0] as in Kaldi; a is learned.

    Waveforms of any number of leading axes, time last.
    """

    def __init__(self, coef=0.97):
        super().__init__()
        self.coef = nn.Parameter(torch.tensor(float(coef)))

    def forward(self, wav):
        return _PreEmphasisFn.apply(wav, self.coef)

    def extra_repr(self):
        return f"coef={self.coef.item():.3f}"
