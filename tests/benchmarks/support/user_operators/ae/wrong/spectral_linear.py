import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.function import once_differentiable


class _DivideBySigma(torch.autograd.Function):
    """W / (u' W v) with the singular vectors as constants."""

    @staticmethod
    def forward(ctx, weight, u, v, coeff):
        sigma = torch.dot(u, weight @ v)
        factor = torch.clamp(sigma / coeff, min=1.0)
        ctx.save_for_backward(weight, u, v, factor)
        ctx.coeff = coeff
        return weight / factor

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        weight, u, v, factor = ctx.saved_tensors
        out = grad / factor
        if factor > 1:
            inner = (grad * weight).sum() / (factor * factor)
            out = out - inner * torch.outer(u, v)
        return out, None, None, None


class LipschitzLinear(nn.Module):
    """Linear layer whose spectral norm is softly bounded by ``coeff``; ``update()`` runs the power iteration."""

    def __init__(self, in_features, out_features, coeff=1.0):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        nn.init.kaiming_uniform_(self.weight, a=5 ** 0.5)
        self.bias = nn.Parameter(torch.zeros(out_features))
        self.coeff = coeff
        self.register_buffer("u", F.normalize(torch.ones(out_features), dim=0))
        self.register_buffer("v", F.normalize(torch.ones(in_features), dim=0))

    @torch.no_grad()
    def update(self, steps=5):
        for _ in range(steps):
            self.v.copy_(F.normalize(self.weight.t() @ self.u, dim=0))
            self.u.copy_(F.normalize(self.weight @ self.v, dim=0))
        return self

    def forward(self, x):
        w = _DivideBySigma.apply(self.weight, self.u, self.v, self.coeff)
        return F.linear(x, w, self.bias)
