import torch
from torch import nn
from torch.autograd import Function


class _BatchNorm(Function):
    @staticmethod
    def forward(ctx, x, gamma, beta, mean, var, eps):
        shape = [1, -1] + [1] * (x.dim() - 2)
        ctx.eps = eps
        ctx.save_for_backward(x, gamma)
        xhat = (x - mean.view(shape)) / (var.view(shape) + eps).sqrt()
        return xhat * gamma.view(shape) + beta.view(shape)

    @staticmethod
    def backward(ctx, g):
        x, gamma = ctx.saved_tensors
        dims = [0] + list(range(2, x.dim()))
        inv = (x.var(dims, unbiased=False, keepdim=True) + ctx.eps).rsqrt()
        xhat = (x - x.mean(dims, keepdim=True)) * inv
        ggamma = (g * xhat).sum(dims)
        gbeta = g.sum(dims)
        gm = g.mean(dims, keepdim=True)
        gxm = (g * xhat).mean(dims, keepdim=True)
        w = gamma.view([1, -1] + [1] * (x.dim() - 2))
        gx = w * inv * (g - gm - xhat * gxm)
        return gx, ggamma, gbeta, None, None, None


class BatchNorm(nn.Module):
    """Batch norm for (N, C) or (N, C, *). Training only normalises with the batch's statistics;
    the running ones are kept for evaluation (a plain affine map, left to autograd)."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(num_features))
        self.beta = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.eps, self.momentum = eps, momentum

    def forward(self, x):
        shape = [1, -1] + [1] * (x.dim() - 2)
        if not self.training:
            y = (x - self.running_mean.view(shape)) * (self.running_var.view(shape) + self.eps).rsqrt()
            return y * self.gamma.view(shape) + self.beta.view(shape)
        dims = [0] + list(range(2, x.dim()))
        with torch.no_grad():
            mean, var = x.mean(dims), x.var(dims, unbiased=False)
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(var, self.momentum)
        return _BatchNorm.apply(x, self.gamma, self.beta, mean, var, self.eps)
