import torch
import torch.nn.functional as F
from torch import nn


class _BetaSoftplus(torch.autograd.Function):
    """log(1 + exp(beta x)) / beta, twice differentiable (signed distance fields need its Hessian)."""

    @staticmethod
    def forward(ctx, x, beta, shift):
        ctx.save_for_backward(torch.sigmoid(beta * x))
        return F.softplus(x, beta) - shift

    @staticmethod
    def backward(ctx, grad):
        (slope,) = ctx.saved_tensors
        return grad * slope, None, None


class SDFSoftplus(nn.Module):
    def __init__(self, width_in, width_out, beta=100.0, centred=False):
        super().__init__()
        self.lin = nn.Linear(width_in, width_out)
        self.beta = beta
        self.shift = float(torch.log(torch.tensor(2.0))) / beta if centred else 0.0

    def forward(self, x):
        return _BetaSoftplus.apply(self.lin(x), self.beta, self.shift)
