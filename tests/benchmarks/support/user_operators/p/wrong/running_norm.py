import torch
import torch.nn as nn


class _Whiten(torch.autograd.Function):
    @staticmethod
    def forward(ctx, obs, mean, var, clip, eps):
        inv = torch.rsqrt(var + eps)
        z = (obs - mean) * inv
        ctx.inside = z.abs() <= clip
        ctx.var, ctx.eps = var, eps
        return z.clamp(-clip, clip)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.inside * torch.rsqrt(ctx.var + ctx.eps), None, None, None, None


class ObsNormalizer(nn.Module):
    """Normalise observations (B, D) by the statistics seen so far.

    The statistics are those of the batches before this one; in training mode they are
    updated afterwards, and no gradient flows into them.
    """

    def __init__(self, dim, momentum=0.1, clip=5.0, eps=1e-5):
        super().__init__()
        self.momentum, self.clip, self.eps = momentum, clip, eps
        self.register_buffer("running_mean", torch.zeros(dim))
        self.register_buffer("running_var", torch.ones(dim))

    def forward(self, obs):
        out = _Whiten.apply(obs, self.running_mean, self.running_var, self.clip, self.eps)
        if self.training:
            with torch.no_grad():
                self.running_mean.lerp_(obs.detach().mean(0), self.momentum)
                self.running_var.lerp_(obs.detach().var(0, unbiased=False), self.momentum)
        return out
