import torch
from torch import nn


class _TernarySTE(torch.autograd.Function):
    """Straight-through: the latent weight gets the gradient of the ternary one as it is."""

    @staticmethod
    def forward(ctx, x, weight, alpha):
        t = weight.sign() * (weight.abs() > 0.7 * weight.abs().mean())
        ctx.save_for_backward(x, t, alpha)
        return x @ (alpha[:, None] * t).t()

    @staticmethod
    def backward(ctx, g):
        x, t, alpha = ctx.saved_tensors
        gx = gw = ga = None
        if ctx.needs_input_grad[0]:
            gx = g @ t
        if ctx.needs_input_grad[1]:
            gw = g.flatten(0, -2).t() @ x.flatten(0, -2)
        if ctx.needs_input_grad[2]:
            ga = (g * (x @ t.t())).flatten(0, -2).sum(0)
        return gx, gw, ga


class TernaryLinear(nn.Module):
    """Linear layer with weights in {-alpha, 0, alpha}, alpha learned for each output.

    The latent weight is trained by a straight-through estimator (freeze it to fine-tune alpha only).
    """

    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_out, n_in) * 0.1)
        self.alpha = nn.Parameter(torch.ones(n_out))

    def forward(self, x):
        return _TernarySTE.apply(x, self.weight, self.alpha)
