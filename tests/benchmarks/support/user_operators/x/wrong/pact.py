import torch
import torch.nn as nn


class PactQuantize(torch.autograd.Function):
    """PACT (Choi et al. 2018): clip to [0, alpha] and quantise to 2**bits - 1 steps.

    As in the paper the rounding is straight through: dy/dx = 1 on 0 <= x < alpha, else 0;
    dy/dalpha = 1 where x >= alpha, else 0.
    """

    @staticmethod
    def forward(ctx, x, alpha, bits):
        ctx.save_for_backward(x, alpha)
        step = (2**bits - 1) / alpha
        y = torch.minimum(x.clamp(min=0), alpha)
        return torch.round(y * step) / step

    @staticmethod
    def backward(ctx, dy):
        x, alpha = ctx.saved_tensors
        above = x >= alpha
        dx = dy * ((x >= 0) & ~above)
        dalpha = (dy * ~above).sum().view(1)
        return dx, dalpha, None


class PACT(nn.Module):
    def __init__(self, alpha=1.0, bits=4):
        super().__init__()
        self.alpha = nn.Parameter(torch.tensor([float(alpha)]))
        self.bits = bits

    def forward(self, x):
        return PactQuantize.apply(x, self.alpha, self.bits)
