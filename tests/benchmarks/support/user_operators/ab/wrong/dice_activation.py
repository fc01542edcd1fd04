import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _Dice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha, mean, var, eps, batch_stats):
        rstd = (var + eps).rsqrt()
        z = (x - mean) * rstd
        p = torch.sigmoid(z)
        ctx.save_for_backward(x, alpha, z, rstd, p)
        ctx.batch_stats = batch_stats
        return x * (p + alpha * (1 - p))

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, alpha, z, rstd, p = ctx.saved_tensors
        gz = g * x * (1 - alpha) * p * (1 - p)
        gx = g * (p + alpha * (1 - p))
        gx = gx + rstd * (gz - gz.mean(0) - z * (gz * z).mean(0))
        galpha = (g * x * (1 - p)).sum(0)
        return gx, galpha, None, None, None, None


class Dice(nn.Module):
    """Data-adaptive activation of the deep interest network, x (batch, features)."""

    def __init__(self, dim, eps=1e-5, momentum=0.1):
        super().__init__()
        self.alpha = nn.Parameter(torch.linspace(0.1, 0.4, dim))
        self.register_buffer("running_mean", torch.zeros(dim))
        self.register_buffer("running_var", torch.ones(dim))
        self.eps, self.momentum = eps, momentum

    def forward(self, x, frozen=False):
        batch_stats = self.training and not frozen
        if batch_stats:
            with torch.no_grad():
                mean, var = x.mean(0), x.var(0, unbiased=False)
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(var, self.momentum)
        else:
            mean, var = self.running_mean.clone(), self.running_var.clone()
        return _Dice.apply(x, self.alpha, mean, var, self.eps, batch_stats)
