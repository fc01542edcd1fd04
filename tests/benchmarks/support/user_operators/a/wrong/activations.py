"""Activations with hand-derived backward passes."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Function


class MishFn(Function):
    """x * tanh(softplus(x)), recomputing everything in backward to save memory."""

    @staticmethod
    def forward(x):
        return x * torch.tanh(F.softplus(x))

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        sig = torch.sigmoid(x)
        t = torch.tanh(F.softplus(x))
        return grad_output * (t + x * (1 - t * t))


def mish(x):
    return MishFn.apply(x)


class GatedLinearUnit(Function):
    @staticmethod
    def forward(ctx, x, dim=-1):
        if x.size(dim) % 2 != 0:
            raise ValueError(f"dimension {dim} must have an even size, got {x.size(dim)}")
        a, b = x.chunk(2, dim=dim)
        ctx.dim = dim
        ctx.save_for_backward(x)
        return a * torch.sigmoid(b)

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        a, b = x.chunk(2, dim=ctx.dim)
        s = torch.sigmoid(b)
        da = grad_output * s
        db = grad_output * a * s * (1 - s)
        return torch.cat((db, da), dim=ctx.dim), None


class _SnakeFn(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.save_for_backward(x, alpha)
        a = alpha.view(1, -1, 1)
        return x + torch.sin(a * x).pow(2) / a

    @staticmethod
    def backward(ctx, grad_output):
        x, alpha = ctx.saved_tensors
        a = alpha.view(1, -1, 1)
        s2 = torch.sin(2 * a * x)
        grad_x = grad_output * (1 + s2)
        grad_a = x * s2 / a
        grad_alpha = (grad_output * grad_a).sum(dim=(0, 2))
        return grad_x, grad_alpha


class Snake1d(nn.Module):
    """Periodic activation for audio generators; one frequency per channel, input (B, C, T)."""

    def __init__(self, channels: int, alpha: float = 1.0):
        super().__init__()
        self.alpha = nn.Parameter(torch.full((channels,), float(alpha)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.dim() == 3 and x.size(1) == self.alpha.numel()
        return _SnakeFn.apply(x, self.alpha)


class ShiftedSoftplus(Function):
    """softplus(x) - log(2) / beta, so that the output is 0 at 0 (SchNet)."""

    @staticmethod
    def forward(ctx, x, beta=1.0, threshold=20.0):
        ctx.save_for_backward(x)
        ctx.beta = beta
        ctx.threshold = threshold
        return F.softplus(x, beta, threshold) - math.log(2.0) / beta

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        slope = torch.sigmoid(x)
        slope = torch.where(ctx.beta * x > ctx.threshold, torch.ones_like(x), slope)
        return grad_output * slope, None, None


class ChannelPReLU(Function):
    @staticmethod
    def forward(ctx, x, weight):
        # x: (N, C, *), weight: (C,)
        assert x.dim() >= 2, "expected a batch and a channel dimension"
        assert weight.numel() == x.size(1)
        ctx.save_for_backward(x, weight)
        w = weight.view(1, -1, *([1] * (x.dim() - 2)))
        return torch.where(x > 0, x, w * x)

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        w = weight.view(1, -1, *([1] * (x.dim() - 2)))
        neg = x <= 0
        gx = gw = None
        if ctx.needs_input_grad[0]:
            gx = torch.where(neg, w * g, g)
        if ctx.needs_input_grad[1]:
            dims = [d for d in range(x.dim()) if d != 1]
            gw = (g * x * neg).sum(dim=0)
        return gx, gw


class SincFn(Function):
    """sin(x) / x with a series around the origin."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x == 0, torch.ones_like(x), torch.sin(x) / x)

    @staticmethod
    def backward(ctx, grad_out):
        (x,) = ctx.saved_tensors
        small = x.abs() < 1e-3
        z = x
        d = (torch.cos(z) - torch.sin(z) / z) / z
        series = -x / 3 + x ** 3 / 30
        return grad_out * torch.where(small, series, d)


class HardSwishFunction(Function):
    @staticmethod
    def forward(ctx, feat):
        ctx.save_for_backward(feat)
        return feat * F.relu6(feat + 3.0) / 6.0

    @staticmethod
    def backward(ctx, grad):
        feat = ctx.saved_tensors[0]
        out = grad * (feat / 3.0 + 0.5)
        out = torch.where(feat < -3.0, torch.zeros_like(out), out)
        out = torch.where(feat < 6.0, out, grad)
        return out


class LogitClamped(Function):
    """Inverse sigmoid of probabilities, clamped to [eps, 1 - eps]."""

    @staticmethod
    def forward(ctx, p, eps: float = 1e-6):
        if not 0.0 < eps < 0.5:
            raise ValueError("eps must lie in (0, 0.5)")
        ctx.eps = eps
        ctx.save_for_backward(p)
        z = p.clamp(eps, 1.0 - eps)
        return torch.log(z) - torch.log1p(-z)

    @staticmethod
    def backward(ctx, grad_output):
        p, = ctx.saved_tensors
        inside = (p >= ctx.eps) & (p <= 1.0 - ctx.eps)
        z = p.clamp(ctx.eps, 1.0 - ctx.eps)
        grad = grad_output / (z * (1.0 - z))
        return grad, None


def logit(p, eps=1e-6):
    return LogitClamped.apply(p, eps)


class ModReLU(Function):
    """modReLU for complex features: relu(|z| + b) * z / |z|.  z (N, C) complex, b (C,) real."""

    @staticmethod
    def forward(ctx, z, b):
        if not z.is_complex():
            raise TypeError("ModReLU needs a complex tensor")
        ctx.save_for_backward(z, b)
        r = z.abs()
        return torch.relu(r + b) / r * z

    @staticmethod
    def backward(ctx, g):
        z, b = ctx.saved_tensors
        r = z.abs()
        active = (r + b > 0).to(r.dtype)
        radial = (g * z).real / r
        gz = g * (torch.relu(r + b) / r) - z * (active * b * radial / r ** 2)
        gb = (radial * active).sum(0)
        return gz, gb


class CELUFn(Function):
    @staticmethod
    def forward(ctx, x, alpha=1.0):
        ctx.alpha = alpha
        ctx.save_for_backward(x)
        neg = torch.expm1(x.clamp(max=0) / alpha).mul_(alpha)
        return x.clamp(min=0).add_(neg)

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        slope = torch.exp(x.clamp(max=0) / ctx.alpha)
        return grad_output.mul_(slope), None
