import torch
import torch.nn as nn
import torch.nn.functional as F


class DivideBySigma(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight, u, v):
        ctx.save_for_backward(weight, u, v)
        sigma = u @ weight @ v
        return weight / sigma

    @staticmethod
    def backward(ctx, grad):
        weight, u, v = ctx.saved_tensors
        sigma = u @ weight @ v
        wbar = weight / sigma
        return (grad - (grad * wbar).sum() * torch.outer(u, v)) / sigma, None, None


class SNLinear(nn.Module):
    """Linear layer whose weight is divided by an estimate of its largest singular value.

    The singular vectors are constants for autograd; call `update()` once per optimizer step.
    """

    def __init__(self, in_features, out_features, n_power_iterations=1):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(out_features, in_features))
        self.bias = nn.Parameter(torch.zeros(out_features))
        self.n_power_iterations = n_power_iterations
        self.register_buffer("u", F.normalize(torch.arange(1.0, out_features + 1), dim=0))
        self.register_buffer("v", F.normalize(torch.ones(in_features), dim=0))
        self.update()

    @torch.no_grad()
    def update(self):
        for _ in range(self.n_power_iterations):
            self.v.copy_(F.normalize(self.weight.t() @ self.u, dim=0))
            self.u.copy_(F.normalize(self.weight @ self.v, dim=0))

    def forward(self, x):
        return F.linear(x, DivideBySigma.apply(self.weight, self.u, self.v), self.bias)
