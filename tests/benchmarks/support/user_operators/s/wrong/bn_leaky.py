import torch
from torch import nn


class _BNAct(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, mean, var, batch_stats, eps, slope):
        ctx.save_for_backward(x, weight, bias, mean, var)
        ctx.batch_stats, ctx.eps, ctx.slope = batch_stats, eps, slope
        y = (x - mean) * torch.rsqrt(var + eps) * weight + bias
        return torch.where(y > 0, y, slope * y)

    @staticmethod
    def backward(ctx, dy):
        x, weight, bias, mean, var = ctx.saved_tensors
        if ctx.batch_stats:  # again, as functions of x, for a second derivative
            mean, var = x.mean(0), x.var(0, unbiased=False)
        rstd = torch.rsqrt(var + ctx.eps)
        xhat = (x - mean) * rstd
        dy = torch.where(xhat * weight + bias > 0, dy, ctx.slope * dy)
        dbias = dy.sum(0)
        dweight = (dy * xhat).sum(0)
        dx = dy * weight * rstd
        dx = dx - (dbias + xhat * dweight) * weight * rstd / x.shape[0]
        return dx, dweight, dbias, None, None, None, None, None


class BNLeakyReLU(nn.Module):
    """BatchNorm1d and LeakyReLU in one.  Input (N, C)."""

    def __init__(self, num_features, slope=0.01, momentum=0.1, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.slope, self.momentum, self.eps = slope, momentum, eps

    def forward(self, x):
        if self.training:
            if x.shape[0] < 2:
                raise ValueError("training takes more than one sample")
            with torch.no_grad():
                mean, var = x.mean(0), x.var(0, unbiased=False)
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(x.var(0), self.momentum)
        else:
            # copies: a later training step changes the buffers
            mean, var = self.running_mean.clone(), self.running_var.clone()
        return _BNAct.apply(
            x, self.weight, self.bias, mean, var, self.training, self.eps, self.slope
        )
