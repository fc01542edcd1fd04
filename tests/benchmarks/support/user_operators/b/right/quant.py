import math

import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class FakeQuantLSQ(Function):
    """Fake quantisation with a learned step: out = clamp(round(x / step), qmin, qmax) * step.

    Straight-through, with v = x / step the surrogate gradients are
        d out / d x    = 1 if qmin <= v <= qmax else 0
        d out / d step = round(v) - v inside, qmin below, qmax above (summed over x).
    """

    @staticmethod
    def forward(ctx, x, step, qmin=-8, qmax=7):
        assert step.numel() == 1
        ctx.save_for_backward(x, step)
        ctx.qmin, ctx.qmax = qmin, qmax
        return torch.clamp(torch.round(x / step), qmin, qmax) * step

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        x, step = ctx.saved_tensors
        v = x / step
        below, above = v < ctx.qmin, v > ctx.qmax
        grad_x = grad_output.masked_fill(below | above, 0.0)
        d_step = torch.round(v) - v
        d_step[below] = ctx.qmin
        d_step[above] = ctx.qmax
        grad_step = (grad_output * d_step).sum().view(step.shape)
        return grad_x, grad_step, None, None


class SoftRound(Function):
    """Differentiable rounding, sharper as alpha grows (Agustsson & Theis, 2020)."""

    @staticmethod
    def forward(ctx, x, alpha=4.0):
        ctx.save_for_backward(x)
        ctx.alpha = alpha
        base = x.floor() + 0.5
        return base + torch.tanh(alpha * (x - base)) / (2 * math.tanh(alpha / 2))

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        alpha = ctx.alpha
        t = torch.tanh(alpha * (x - x.floor() - 0.5))
        return g * alpha * (1 - t * t) / (2 * math.tanh(alpha / 2)), None


class ClampTensor(Function):
    """clamp(x, lo, hi) with tensor bounds that broadcast to x (lo < hi) and are trained too."""

    @staticmethod
    def forward(ctx, x, lo, hi):
        if bool((lo >= hi).any()):
            raise ValueError("lo must be below hi")
        ctx.save_for_backward(x, lo, hi)
        return torch.maximum(torch.minimum(x, hi), lo)

    @staticmethod
    def backward(ctx, g):
        x, lo, hi = ctx.saved_tensors
        under, over = x < lo, x > hi
        gx = g * ~(under | over)
        g_lo = (g * under).sum_to_size(lo.shape)
        g_hi = (g * over).sum_to_size(hi.shape)
        return gx, g_lo, g_hi


class _PACTFn(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.save_for_backward(x, alpha)
        return torch.minimum(x.clamp(min=0), alpha.view(1, -1, 1))

    @staticmethod
    def backward(ctx, dy):
        x, alpha = ctx.saved_tensors
        full = x >= alpha.view(1, -1, 1)
        dx = dy * ((x > 0) & ~full)
        d_alpha = (dy * full).sum((0, 2))
        return dx, d_alpha


class PACT(nn.Module):
    """Clipped ReLU with a trainable ceiling for each channel of (N, C, L)."""

    def __init__(self, channels, init=6.0):
        super().__init__()
        self.alpha = nn.Parameter(torch.full((channels,), init))

    def forward(self, x):
        return _PACTFn.apply(x, self.alpha)


class NormClip(Function):
    """Scales rows (last axis) down to length max_norm where they are longer."""

    @staticmethod
    def forward(ctx, x, max_norm=1.0):
        ctx.save_for_backward(x)
        ctx.max_norm = max_norm
        n = x.norm(dim=-1, keepdim=True).clamp(min=max_norm)
        return x * (max_norm / n)

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        raw = x.norm(dim=-1, keepdim=True)
        n = raw.clamp(min=ctx.max_norm)
        radial = x * (x * g).sum(-1, keepdim=True) / n.pow(2)
        radial = radial * (raw > ctx.max_norm)
        return (g - radial) * (ctx.max_norm / n), None


class SoftThreshold(Function):
    """sign(x) * max(|x| - lam, 0), lam broadcasting to x."""

    @staticmethod
    def forward(ctx, x, lam):
        ctx.save_for_backward(x, lam)
        return x.sign() * (x.abs() - lam).clamp(min=0)

    @staticmethod
    def backward(ctx, grad):
        x, lam = ctx.saved_tensors
        dead = x.abs() <= lam
        grad_x = grad.masked_fill(dead, 0.0)
        grad_lam = -(grad_x * x.sign()).sum_to_size(lam.shape)
        return grad_x, grad_lam


class Winsorize(Function):
    """In each row the k smallest values are raised to the (k+1)-th smallest, likewise on top."""

    @staticmethod
    def forward(ctx, x, k: int = 1):
        n = x.size(-1)
        if 2 * k >= n:
            raise ValueError(f"k={k} is too large for rows of {n}")
        vals, order = x.sort(dim=-1)
        lo, hi = vals[..., k:k + 1], vals[..., n - 1 - k:n - k]
        ctx.save_for_backward(x, order)
        ctx.k = k
        return torch.maximum(torch.minimum(x, hi), lo)

    @staticmethod
    def backward(ctx, g):
        x, order = ctx.saved_tensors
        n, k = x.size(-1), ctx.k
        i_lo, i_hi = order[..., k:k + 1], order[..., n - 1 - k:n - k]
        under = x < x.gather(-1, i_lo)
        over = x > x.gather(-1, i_hi)
        gx = g.masked_fill(under | over, 0.0)
        gx = gx.scatter_add(-1, i_lo, (g * under).sum(-1, keepdim=True))
        gx = gx.scatter_add(-1, i_hi, (g * over).sum(-1, keepdim=True))
        return gx, None


class MuLaw(Function):
    @staticmethod
    def forward(x: torch.Tensor, mu: float = 255.0) -> torch.Tensor:
        return x.sign() * torch.log1p(mu * x.abs()) / math.log1p(mu)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.mu = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        slope = ctx.mu / (math.log1p(ctx.mu) * (1 + ctx.mu * x.abs()))
        return grad_output * slope, None


class _SoftCapGrad(Function):
    @staticmethod
    def forward(ctx, g, x, cap):
        ctx.save_for_backward(g, x)
        ctx.cap = cap
        return g * (1 - torch.tanh(x / cap) ** 2)

    @staticmethod
    def backward(ctx, gg):
        g, x = ctx.saved_tensors
        t = torch.tanh(x / ctx.cap)
        sech2 = 1 - t * t
        return gg * sech2, gg * g * (-2 * t * sech2) / ctx.cap, None


class SoftCap(Function):
    """cap * tanh(x / cap), as used on logits; the double backward is spelled out."""

    @staticmethod
    def forward(ctx, x, cap=30.0):
        ctx.save_for_backward(x)
        ctx.cap = cap
        return cap * torch.tanh(x / cap)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return _SoftCapGrad.apply(g, x, ctx.cap), None


class VQLoss(Function):
    """Mean squared distance of z (N, D) to the nearest rows of codebook (K, D), and their indices."""

    @staticmethod
    def forward(ctx, z, codebook):
        idx = torch.cdist(z, codebook).argmin(dim=1)
        ctx.save_for_backward(z, codebook, idx)
        ctx.mark_non_differentiable(idx)
        return (z - codebook[idx]).pow(2).mean(), idx

    @staticmethod
    def backward(ctx, g, _):
        z, codebook, idx = ctx.saved_tensors
        grad_z = 2.0 * g * (z - codebook[idx]) / z.numel()
        grad_cb = torch.zeros_like(codebook).index_add_(0, idx, -grad_z)
        return grad_z, grad_cb


def soft_cap(logits, cap=30.0):
    return SoftCap.apply(logits, cap)
