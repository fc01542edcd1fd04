"""Image restoration pieces: smoothing, colour, resampling and penalties."""

import torch
import torch.nn.functional as F
from torch.autograd import Function


class RangeWeightedSmooth(Function):
    """Bilateral-like filter (range kernel only) on (B, 1, H, W)."""

    @staticmethod
    def forward(ctx, img, size=3, sigma=0.5):
        b, c, h, w = img.shape
        if c != 1 or size % 2 == 0:
            raise ValueError("single-channel images and an odd window, please")
        pad = size // 2
        patches = F.unfold(img, size, padding=pad)
        inside = F.unfold(torch.ones_like(img), size, padding=pad)
        delta = patches - img.reshape(b, 1, h * w)
        wgt = torch.exp(-(delta**2) / (2.0 * sigma**2)) * inside
        wgt = wgt / wgt.sum(1, keepdim=True)
        out = (wgt * patches).sum(1, keepdim=True)
        ctx.save_for_backward(wgt, delta, patches - out)
        ctx.size, ctx.sigma, ctx.shape = size, sigma, (b, c, h, w)
        return out.reshape(b, 1, h, w)

    @staticmethod
    def backward(ctx, grad):
        wgt, delta, spread = ctx.saved_tensors
        b, c, h, w = ctx.shape
        g = grad.reshape(b, 1, h * w) * wgt
        slope = delta * spread / ctx.sigma**2
        g_patch = g * (1.0 - slope)
        g_center = (g * slope).sum(1).reshape(b, 1, h, w)
        folded = F.fold(g_patch, (h, w), ctx.size, padding=ctx.size // 2)
        return folded + g_center, None, None


class GuidedPatchFilter(Function):
    """Guided filter over rows of flattened patches: out = a (I - mean I) + mean p."""

    @staticmethod
    def forward(ctx, guide, p, eps=1e-2):
        c = guide - guide.mean(1, keepdim=True)
        mp = p.mean(1, keepdim=True)
        var = (c * c).mean(1, keepdim=True)
        a = (c * (p - mp)).mean(1, keepdim=True) / (var + eps)
        ctx.save_for_backward(guide, p)
        ctx.eps = eps
        return a * c + mp

    @staticmethod
    def backward(ctx, g):
        guide, p = ctx.saved_tensors
        k = guide.size(1)
        c = guide - guide.mean(1, keepdim=True)
        e = p - p.mean(1, keepdim=True)
        den = (c * c).mean(1, keepdim=True) + ctx.eps
        a = (c * e).mean(1, keepdim=True) / den
        ga = (g * c).sum(1, keepdim=True) / (k * den)
        gc = g * a + ga * (e - 2.0 * a * c)
        grad_guide = gc - gc.mean(1, keepdim=True)
        grad_p = ga * c + g.mean(1, keepdim=True)
        return grad_guide, grad_p, None


class SpaceToDepth(Function):
    """Inverse pixel shuffle; H and W must be multiples of block."""

    @staticmethod
    def forward(ctx, x, block=2):
        b, c, h, w = x.shape
        if h % block or w % block:
            raise ValueError(f"spatial size {h}x{w} is not a multiple of {block}")
        ctx.block, ctx.shape = block, x.shape
        x = x.reshape(b, c, h // block, block, w // block, block)
        x = x.permute(0, 1, 3, 5, 2, 4)
        return x.reshape(b, c * block * block, h // block, w // block)

    @staticmethod
    def backward(ctx, grad):
        b, c, h, w = ctx.shape
        s = ctx.block
        grad = grad.reshape(b, c, s, s, h // s, w // s)
        grad = grad.permute(0, 1, 4, 2, 5, 3)
        return grad.reshape(b, c, h, w), None


class GreyDilation1d(Function):
    """max_k x[l + dilation * k] + se[k] per channel; also gives the winners."""

    @staticmethod
    def forward(ctx, x, se, dilation=1):
        assert x.dim() == 3 and se.dim() == 2, "x (B, C, L), se (C, K)"
        assert se.size(0) == x.size(1), "one structuring element a channel"
        taps = torch.arange(se.size(1), device=x.device) * dilation
        n_out = x.size(2) - int(taps[-1])
        if n_out < 1:
            raise ValueError("signal shorter than the structuring element")
        index = torch.arange(n_out, device=x.device)[:, None] + taps
        y, arg = (x[:, :, index] + se[:, None, :]).max(dim=-1)
        ctx.save_for_backward(arg)
        ctx.mark_non_differentiable(arg)
        ctx.shapes = (x.shape, se.size(1))
        ctx.dilation = dilation
        return y, arg

    @staticmethod
    def backward(ctx, grad_y, _grad_arg):
        (arg,) = ctx.saved_tensors
        shape, k = ctx.shapes
        start = torch.arange(arg.size(2), device=arg.device)
        source = start + arg * ctx.dilation
        grad_x = grad_y.new_zeros(shape).scatter_add(2, source, grad_y)
        grad_se = grad_y.new_zeros(shape[0], shape[1], k)
        grad_se = grad_se.scatter_add(2, arg, grad_y).sum(0)
        return grad_x, grad_se, None


class SrgbToLinear(Function):
    """Undo the sRGB transfer curve."""

    @staticmethod
    def forward(ctx, srgb):
        ctx.save_for_backward(srgb)
        curve = ((srgb.clamp(min=0.0) + 0.055) / 1.055) ** 2.4
        return torch.where(srgb <= 0.04045, srgb / 12.92, curve)

    @staticmethod
    def backward(ctx, grad_linear):
        (srgb,) = ctx.saved_tensors
        base = (srgb.clamp(min=0.0) + 0.055) / 1.055
        slope = 2.4 / 1.055 * base**1.4
        dark = srgb <= 0.04045
        return grad_linear * torch.where(dark, torch.full_like(slope, 1 / 12.92), slope)


def _correlate(x, k, dim):
    half = k.numel() // 2
    pads = (half, half) if dim == 3 else (0, 0, half, half)
    xp = F.pad(x, pads)
    return sum(k[i] * xp.narrow(dim, i, x.size(dim)) for i in range(k.numel()))


def _tap_grads(g, x, size, dim):
    half = size // 2
    pads = (half, half) if dim == 3 else (0, 0, half, half)
    xp = F.pad(x, pads)
    return torch.stack(
        [(g * xp.narrow(dim, i, x.size(dim))).sum() for i in range(size)]
    )


class SeparableSmooth(Function):
    """The same odd 1-d kernel along rows, then along columns (zero padding)."""

    @staticmethod
    def forward(ctx, image, kernel):
        if kernel.dim() != 1 or kernel.numel() % 2 != 1:
            raise ValueError("kernel must be 1-d with an odd length")
        ctx.save_for_backward(image, kernel)
        return _correlate(_correlate(image, kernel, 3), kernel, 2)

    @staticmethod
    def backward(ctx, grad):
        image, kernel = ctx.saved_tensors
        n = kernel.numel()
        rows = _correlate(image, kernel, 3)
        grad_rows = _correlate(grad, kernel.flip(0), 2)
        grad_kernel = _tap_grads(grad, rows, n, 2) + _tap_grads(grad_rows, image, n, 3)
        return _correlate(grad_rows, kernel.flip(0), 3), grad_kernel


class CharbonnierTV(Function):
    """Smooth total variation of (B, C, H, W)."""

    @staticmethod
    def forward(ctx, x, eps=1e-3, reduction="mean"):
        if reduction not in ("mean", "sum"):
            raise ValueError(f"unknown reduction {reduction!r}")
        dv = x[..., 1:, :] - x[..., :-1, :]
        dh = x[..., :, 1:] - x[..., :, :-1]
        total = (dv * dv + eps**2).sqrt().sum() + (dh * dh + eps**2).sqrt().sum()
        ctx.save_for_backward(x)
        ctx.eps, ctx.reduction = eps, reduction
        return total / x.numel() if reduction == "mean" else total

    @staticmethod
    def backward(ctx, grad_out):
        (x,) = ctx.saved_tensors
        dv = x[..., 1:, :] - x[..., :-1, :]
        dh = x[..., :, 1:] - x[..., :, :-1]
        pv = dv / (dv * dv + ctx.eps**2).sqrt()
        ph = dh / (dh * dh + ctx.eps**2).sqrt()
        gx = torch.zeros_like(x)
        gx[..., 1:, :] += pv
        gx[..., :-1, :] -= pv
        gx[..., :, 1:] += ph
        gx[..., :, :-1] -= ph
        if ctx.reduction == "mean":
            gx = gx / x.numel()
        return gx * grad_out, None, None


class LocalContrastNorm(Function):
    """Whole-sample contrast normalisation with the unbiased deviation."""

    @staticmethod
    def forward(ctx, x, eps=1e-3):
        if x.dim() < 2 or x[0].numel() < 2:
            raise ValueError("every sample needs two values or more")
        dims = tuple(range(1, x.dim()))
        centered = x - x.mean(dims, keepdim=True)
        n = x[0].numel()
        std = ((centered**2).sum(dims, keepdim=True) / (n - 1) + eps).sqrt()
        ctx.save_for_backward(centered, std)
        return centered / std

    @staticmethod
    def backward(ctx, grad):
        centered, std = ctx.saved_tensors
        dims = tuple(range(1, grad.dim()))
        n = centered[0].numel()
        dot = (grad * centered).sum(dims, keepdim=True)
        grad_x = (grad - grad.mean(dims, keepdim=True)) / std
        grad_x = grad_x - centered * dot / ((n - 1) * std**3)
        return grad_x, None


class MirrorPad1d(Function):
    """Reflection without repeating the edge; pad = [left, right]."""

    @staticmethod
    def forward(ctx, x, pad):
        assert x.dim() == 3, "expected (B, C, L)"
        left, right = pad
        if max(left, right) >= x.size(-1):
            raise ValueError("padding must be smaller than the signal")
        ctx.pad = (left, right)
        ctx.length = x.size(-1)
        return F.pad(x, (left, right), mode="reflect")

    @staticmethod
    def backward(ctx, g):
        left, right = ctx.pad
        n = ctx.length
        gx = g[..., left : left + n].clone()
        if left:
            gx[..., 1 : left + 1] += g[..., :left].flip(-1)
        if right:
            gx[..., n - 1 - right : n - 1] += g[..., left + n :].flip(-1)
        return gx, None


def _box(x, radius):
    return F.avg_pool2d(x, 2 * radius + 1, stride=1, padding=radius)


class UnsharpMask(Function):
    """x + amount * (x - blur(x)); gives the sharpened image and the detail layer."""

    @staticmethod
    def forward(ctx, x, amount, radius=1):
        detail = x - _box(x, radius)
        sharp = x + amount * detail
        ctx.save_for_backward(amount, detail)
        ctx.radius = radius
        return sharp, detail

    @staticmethod
    def backward(ctx, g_sharp, g_detail):
        amount, detail = ctx.saved_tensors
        g = amount * g_sharp + g_detail
        grad_x = g_sharp + g - _box(g, ctx.radius)
        grad_amount = (g_sharp * detail).sum_to_size(amount.shape)
        return grad_x, grad_amount, None
