"""Normalisation layers: custom autograd so that activations are recomputed instead of stored."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Function


class LayerNormFn(Function):
    """Layer norm over the last dimension."""

    @staticmethod
    def forward(ctx, x, weight, bias, eps=1e-5):
        mean = x.mean(-1, keepdim=True)
        rstd = torch.rsqrt(x.var(-1, unbiased=False, keepdim=True) + eps)
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        return (x - mean) * rstd * weight + bias

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        mean = x.mean(-1, keepdim=True)
        rstd = torch.rsqrt(x.var(-1, unbiased=False, keepdim=True) + ctx.eps)
        xhat = (x - mean) * rstd
        flat = list(range(x.dim() - 1))
        gw = (grad_output * xhat).sum(flat)
        gb = grad_output.sum(flat)
        gy = grad_output * weight
        gx = gy - gy.mean(-1, keepdim=True) - xhat * (gy * xhat).mean(-1, keepdim=True)
        return gx * rstd, gw, gb, None


class _RMSNormFn(Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        inv = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
        ctx.eps = eps
        ctx.save_for_backward(x, weight)
        return x * inv * weight

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        inv = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + ctx.eps)
        xhat = x * inv
        dw = (dy * xhat).reshape(-1, x.size(-1)).sum(0)
        dxhat = dy * weight
        dx = inv * (dxhat - xhat * (dxhat * xhat).mean(-1, keepdim=True))
        return dx, dw, None


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return _RMSNormFn.apply(x, self.weight, self.eps)


class GroupNormFn(Function):
    @staticmethod
    def forward(ctx, x, num_groups, weight=None, bias=None, eps=1e-5):
        n, c = x.shape[:2]
        if c % num_groups:
            raise ValueError(f"{c} channels cannot be split in {num_groups} groups")
        xg = x.reshape(n, num_groups, -1)
        mu = xg.mean(-1, keepdim=True)
        var = xg.var(-1, unbiased=False, keepdim=True)
        y = ((xg - mu) / torch.sqrt(var + eps)).reshape(x.shape)
        per_channel = (1, c) + (1,) * (x.dim() - 2)
        if weight is not None:
            y = y * weight.view(per_channel)
        if bias is not None:
            y = y + bias.view(per_channel)
        ctx.save_for_backward(x, weight)
        ctx.num_groups, ctx.eps, ctx.has_bias = num_groups, eps, bias is not None
        return y

    @staticmethod
    def backward(ctx, gy):
        x, weight = ctx.saved_tensors
        n, c = x.shape[:2]
        xg = x.reshape(n, ctx.num_groups, -1)
        mu = xg.mean(-1, keepdim=True)
        rstd = torch.rsqrt(xg.var(-1, unbiased=False, keepdim=True) + ctx.eps)
        xhat = (xg - mu) * rstd
        axes = [0] + list(range(2, x.dim()))
        gw = gb = None
        if weight is not None and ctx.needs_input_grad[2]:
            gw = (gy * xhat.reshape(x.shape)).sum(axes)
        if ctx.has_bias and ctx.needs_input_grad[3]:
            gb = gy.sum(axes)
        if weight is not None:
            gy = gy * weight.view((1, c) + (1,) * (x.dim() - 2))
        g = gy.reshape(n, ctx.num_groups, -1)
        gx = rstd * (g - g.mean(-1, keepdim=True) - xhat * (g * xhat).mean(-1, keepdim=True))
        return gx.reshape(x.shape), None, gw, gb, None


class _BatchNormFn(Function):
    @staticmethod
    def forward(ctx, x, weight, bias, running_mean, running_var, training, momentum, eps):
        if training:
            n = x.size(0)
            mean = x.mean(0)
            var = x.var(0, unbiased=False)
            running_mean.mul_(1 - momentum).add_(mean, alpha=momentum)
            running_var.mul_(1 - momentum).add_(var, alpha=momentum * n / (n - 1))
        else:
            mean, var = running_mean, running_var
        ctx.save_for_backward(x, weight, running_mean.clone(), running_var.clone())
        ctx.training, ctx.eps = training, eps
        return (x - mean) * torch.rsqrt(var + eps) * weight + bias

    @staticmethod
    def backward(ctx, gy):
        x, weight, mean, var = ctx.saved_tensors
        if ctx.training:
            mean, var = x.mean(0), x.var(0, unbiased=False)
        rstd = torch.rsqrt(var + ctx.eps)
        xhat = (x - mean) * rstd
        gw = (gy * xhat).sum(0)
        gb = gy.sum(0)
        g = gy * weight
        if not ctx.training:
            return g * rstd, gw, gb, None, None, None, None, None
        gx = rstd * (g - g.mean(0) - xhat * (g * xhat).mean(0))
        return gx, gw, gb, None, None, None, None, None


class BatchNormEMA(nn.Module):
    """Batch norm on (N, C) features."""

    def __init__(self, num_features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum = momentum
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))

    def forward(self, x):
        return _BatchNormFn.apply(x, self.weight, self.bias, self.running_mean, self.running_var,
                                  self.training, self.momentum, self.eps)


class InstanceNormFn(Function):
    """Instance norm without affine parameters, input (N, C, *spatial)."""

    @staticmethod
    def forward(ctx, x, eps=1e-5):
        assert x.dim() >= 3, "InstanceNormFn needs at least one spatial dimension"
        flat = x.flatten(2)
        mean = flat.mean(-1, keepdim=True)
        var = flat.var(-1, unbiased=False, keepdim=True)
        ctx.eps = eps
        ctx.save_for_backward(x)
        return ((flat - mean) / (var + eps).sqrt()).view_as(x)

    @staticmethod
    def backward(ctx, grad_y):
        x, = ctx.saved_tensors
        flat = x.flatten(2)
        g = grad_y.flatten(2)
        centred = flat - flat.mean(-1, keepdim=True)
        m = flat.size(-1)
        var = centred.pow(2).sum(-1, keepdim=True) / m
        inv = (var + ctx.eps).rsqrt()
        xhat = centred * inv
        gx = inv * (g - g.mean(-1, keepdim=True) - xhat * (g * xhat).mean(-1, keepdim=True))
        return gx.view_as(x), None


class WeightNormFn(Function):
    """w = g * v / ||v||, the norm being taken over all dims but `dim`; g has keepdim shape."""

    @staticmethod
    def forward(ctx, v, g, dim=0):
        dims = tuple(d for d in range(v.dim()) if d != dim)
        norm = v.pow(2).sum(dims, keepdim=True).sqrt()
        ctx.dim = dim
        ctx.save_for_backward(v, g)
        return v * (g / norm)

    @staticmethod
    def backward(ctx, gw):
        v, g = ctx.saved_tensors
        dims = tuple(d for d in range(v.dim()) if d != ctx.dim)
        norm = v.pow(2).sum(dims, keepdim=True).sqrt()
        unit = v / norm
        gg = (gw * unit).sum(dims, keepdim=True)
        gv = (g / norm) * (gw - unit * gg)
        return gv, gg, None


class L2NormalizeFn(Function):
    @staticmethod
    def forward(x, dim=-1, eps=1e-12):
        return x / x.norm(dim=dim, keepdim=True).clamp(min=eps)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, dim, eps = inputs
        ctx.save_for_backward(x)
        ctx.dim, ctx.eps = dim, eps

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        norm = x.norm(dim=ctx.dim, keepdim=True)
        inv = 1.0 / norm.clamp(min=ctx.eps)
        y = x * inv
        radial = y * (grad * y).sum(ctx.dim, keepdim=True)
        radial = torch.where(norm > ctx.eps, radial, torch.zeros_like(radial))
        return (grad - radial) * inv, None, None


def l2_normalize(x, dim=-1, eps=1e-12):
    return L2NormalizeFn.apply(x, dim, eps)


class ZScore(Function):
    """Standardise along `dim`; returns the scores and the standard deviation (keepdim)."""

    @staticmethod
    def forward(ctx, x, dim=0, ddof=1):
        if x.size(dim) <= ddof:
            raise ValueError("not enough rows for a standard deviation")
        c = x - x.mean(dim, keepdim=True)
        std = (c.pow(2).sum(dim, keepdim=True) / (x.size(dim) - ddof)).sqrt()
        z = c / std
        ctx.save_for_backward(z, std)
        ctx.dim, ctx.ddof = dim, ddof
        return z, std

    @staticmethod
    def backward(ctx, gz, gstd):
        z, std = ctx.saved_tensors
        dof = z.size(ctx.dim) - ctx.ddof
        gx = gz - gz.mean(ctx.dim, keepdim=True)
        gx = gx - z * (gz * z).sum(ctx.dim, keepdim=True) / dof
        gx = gx / std + gstd * z / dof
        return gx, None, None


def _window_sum(t, left, right):
    # sum of channels c-left .. c+right
    return F.pad(t, (0, 0, left, right)).unfold(1, left + right + 1, 1).sum(-1)


class LocalResponseNorm(Function):
    """AlexNet style normalisation across channels, input (N, C, L)."""

    @staticmethod
    def forward(ctx, x, size=5, alpha=1e-4, beta=0.75, k=1.0):
        if x.dim() != 3:
            raise ValueError("expected (N, C, L)")
        left, right = size // 2, (size - 1) // 2
        scale = k + alpha / size * _window_sum(x * x, left, right)
        ctx.save_for_backward(x, scale)
        ctx.size, ctx.alpha, ctx.beta = size, alpha, beta
        return x * scale.pow(-beta)

    @staticmethod
    def backward(ctx, grad):
        x, scale = ctx.saved_tensors
        left, right = ctx.size // 2, (ctx.size - 1) // 2
        inner = grad * x * scale.pow(-ctx.beta - 1)
        spread = _window_sum(inner, right, left)
        gx = grad * scale.pow(-ctx.beta) - 2 * ctx.alpha * ctx.beta / ctx.size * x * spread
        return gx, None, None, None, None


class FilterResponseNormFn(Function):
    """FRN followed by the thresholded linear unit, on (N, C, H, W)."""

    @staticmethod
    def forward(ctx, x, gamma, beta, tau, eps=1e-6):
        nu2 = x.pow(2).mean(dim=(2, 3), keepdim=True)
        inv = torch.rsqrt(nu2 + eps)
        xhat = x * inv
        y = gamma * xhat + beta
        ctx.save_for_backward(xhat, inv, gamma, y > tau)
        return torch.max(y, tau)

    @staticmethod
    def backward(ctx, g):
        xhat, inv, gamma, on = ctx.saved_tensors
        gy = g * on
        g_gamma = (gy * xhat).sum(dim=(0, 2, 3), keepdim=True)
        g_beta = gy.sum(dim=(0, 2, 3), keepdim=True)
        g_tau = (g * ~on).sum(dim=(0, 2, 3), keepdim=True)
        gh = gy * gamma
        gx = inv * (gh - xhat * (gh * xhat).mean(dim=(2, 3), keepdim=True))
        return gx, g_gamma, g_beta, g_tau, None


def filter_response_norm(x, gamma, beta, tau, eps=1e-6):
    """gamma, beta and tau have shape (1, C, 1, 1)."""
    return FilterResponseNormFn.apply(x, gamma, beta, tau, eps)
