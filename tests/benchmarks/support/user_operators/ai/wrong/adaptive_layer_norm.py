import torch
from torch import nn


class _Modulate(torch.autograd.Function):
    """LayerNorm(x) * (1 + scale) + shift with x (B, T, D), scale and shift (B, D)."""

    @staticmethod
    def forward(ctx, x, shift, scale, eps):
        ctx.eps = eps
        ctx.save_for_backward(x, scale)
        xhat, _ = _Modulate.normalise(x, eps)
        return xhat * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)

    @staticmethod
    def normalise(x, eps):
        var, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
        rstd = torch.rsqrt(var + eps)
        return (x - mean) * rstd, rstd

    @staticmethod
    def backward(ctx, grad):
        x, scale = ctx.saved_tensors
        b, t, d = x.shape
        xhat, rstd = _Modulate.normalise(x, ctx.eps)
        rows = grad.view(b * t, d)
        g = (rows * (1 + scale).repeat_interleave(t, 0)).view(b, t, d)
        gx = rstd * (g - g.mean(-1, keepdim=True) - xhat * (g * xhat).mean(-1, keepdim=True))
        return gx, grad.sum(1), (grad * xhat).sum(1), None


class AdaptiveLayerNorm(nn.Module):
    def __init__(self, dim, cond_dim=None, eps=1e-5):
        super().__init__()
        self.proj = nn.Linear(cond_dim or dim, 2 * dim)
        nn.init.zeros_(self.proj.weight)
        nn.init.zeros_(self.proj.bias)
        self.eps = eps

    def forward(self, x, cond):
        shift, scale = self.proj(cond).chunk(2, -1)
        return _Modulate.apply(x, shift, scale, self.eps)
