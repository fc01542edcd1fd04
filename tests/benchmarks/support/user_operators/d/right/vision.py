"""Differentiable image ops used by the registration / restoration code."""
import math
from typing import Optional

import torch
import torch.nn.functional as F
from torch.autograd import Function


def _corners(xs, ys, H, W):
    x0 = xs.detach().floor().long().clamp(0, W - 2)
    y0 = ys.detach().floor().long().clamp(0, H - 2)
    wx = (xs - x0).clamp(0, 1)
    wy = (ys - y0).clamp(0, 1)
    return x0, y0, wx, wy


class BilinearSample(Function):
    """Read a (C, H, W) map at P pixel positions, clamped to the border."""

    @staticmethod
    def forward(ctx, img, xs, ys):
        assert img.dim() == 3, "expected (C, H, W)"
        assert xs.dim() == 1 and xs.shape == ys.shape
        C, H, W = img.shape
        ctx.save_for_backward(img, xs, ys)
        x0, y0, wx, wy = _corners(xs, ys, H, W)
        top = img[:, y0, x0] * (1 - wx) + img[:, y0, x0 + 1] * wx
        bot = img[:, y0 + 1, x0] * (1 - wx) + img[:, y0 + 1, x0 + 1] * wx
        return top * (1 - wy) + bot * wy

    @staticmethod
    def backward(ctx, grad):
        img, xs, ys = ctx.saved_tensors
        C, H, W = img.shape
        x0, y0, wx, wy = _corners(xs, ys, H, W)
        flat = grad.new_zeros(C, H * W)
        for dy, dx, w in (
            (0, 0, (1 - wx) * (1 - wy)),
            (0, 1, wx * (1 - wy)),
            (1, 0, (1 - wx) * wy),
            (1, 1, wx * wy),
        ):
            flat.index_add_(1, (y0 + dy) * W + x0 + dx, grad * w)
        a, b = img[:, y0, x0], img[:, y0, x0 + 1]
        c, d = img[:, y0 + 1, x0], img[:, y0 + 1, x0 + 1]
        in_x = (xs > 0) & (xs < W - 1)
        in_y = (ys > 0) & (ys < H - 1)
        gxs = (grad * ((b - a) * (1 - wy) + (d - c) * wy)).sum(0) * in_x
        gys = (grad * ((c - a) * (1 - wx) + (d - b) * wx)).sum(0) * in_y
        return flat.view(C, H, W), gxs, gys


class DeformTap1d(Function):
    """Depthwise 1-D deformable convolution, zero outside of the signal.

    x: (B, C, L), offset: (B, K, L), weight: (C, K)
    """

    @staticmethod
    def _pos(offset, L):
        K = offset.shape[1]
        base = torch.arange(L, dtype=offset.dtype, device=offset.device)
        taps = torch.arange(K, dtype=offset.dtype, device=offset.device) - K // 2
        p = base.view(1, 1, L) + taps.view(1, K, 1) + offset
        i0 = p.detach().floor()
        return i0.long(), (p - i0).unsqueeze(1)

    @staticmethod
    def _read(x, idx):
        B, C, L = x.shape
        K = idx.shape[1]
        ok = ((idx >= 0) & (idx < L)).unsqueeze(1)
        j = idx.clamp(0, L - 1).unsqueeze(1).expand(B, C, K, L)
        return x.unsqueeze(2).expand(B, C, K, L).gather(3, j) * ok

    @staticmethod
    def _write(v, idx):
        B, C, K, L = v.shape
        ok = ((idx >= 0) & (idx < L)).unsqueeze(1)
        j = idx.clamp(0, L - 1).unsqueeze(1).expand(B, C, K, L).reshape(B, C, K * L)
        return v.new_zeros(B, C, L).scatter_add(2, j, (v * ok).reshape(B, C, K * L))

    @staticmethod
    def forward(ctx, x, offset, weight):
        if offset.shape[1] != weight.shape[1]:
            raise ValueError("one offset per tap is needed")
        ctx.save_for_backward(x, offset, weight)
        i0, frac = DeformTap1d._pos(offset, x.shape[-1])
        left = DeformTap1d._read(x, i0)
        right = DeformTap1d._read(x, i0 + 1)
        return torch.einsum("bckl,ck->bcl", left * (1 - frac) + right * frac, weight)

    @staticmethod
    def backward(ctx, grad_out):
        x, offset, weight = ctx.saved_tensors
        i0, frac = DeformTap1d._pos(offset, x.shape[-1])
        left = DeformTap1d._read(x, i0)
        right = DeformTap1d._read(x, i0 + 1)
        g_tap = grad_out.unsqueeze(2) * weight[None, :, :, None]
        g_x = DeformTap1d._write(g_tap * (1 - frac), i0) + DeformTap1d._write(g_tap * frac, i0 + 1)
        g_offset = (g_tap * (right - left)).sum(dim=1)
        g_weight = torch.einsum("bckl,bcl->ck", left * (1 - frac) + right * frac, grad_out)
        return g_x, g_offset, g_weight


class RoiMeanPool(Function):
    @staticmethod
    def forward(ctx, features: torch.Tensor, boxes: torch.Tensor):
        """Mean of features (C, H, W) in each box (x1, y1, x2, y2), both ends included."""
        assert features.dim() == 3
        assert boxes.dim() == 2 and boxes.shape[1] == 4 and not boxes.is_floating_point()
        ctx.shape = features.shape
        ctx.boxes = boxes.tolist()
        rows = [features[:, y1:y2 + 1, x1:x2 + 1].mean(dim=(1, 2)) for x1, y1, x2, y2 in ctx.boxes]
        return torch.stack(rows)

    @staticmethod
    def backward(ctx, grad):
        g = grad.new_zeros(ctx.shape)
        for r, (x1, y1, x2, y2) in enumerate(ctx.boxes):
            area = (y2 - y1 + 1) * (x2 - x1 + 1)
            g[:, y1:y2 + 1, x1:x2 + 1] += (grad[r] / area)[:, None, None]
        return g, None


class SrgbDecode(Function):
    """sRGB in [0, 1] to linear light."""

    @staticmethod
    def forward(rgb):
        low = rgb <= 0.04045
        return torch.where(low, rgb / 12.92, ((rgb.clamp(min=0) + 0.055) / 1.055) ** 2.4)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx, grad_output):
        rgb, = ctx.saved_tensors
        low = rgb <= 0.04045
        curve = 2.4 / 1.055 * ((rgb.clamp(min=0) + 0.055) / 1.055) ** 1.4
        return grad_output * torch.where(low, torch.full_like(rgb, 1 / 12.92), curve)


def srgb_to_linear(img):
    return SrgbDecode.apply(img)


class ColourMatrix(Function):
    """Mix the channels of a (B, C, H, W) image with a (D, C) matrix, plus an offset."""

    @staticmethod
    def forward(image, matrix, offset=None):
        out = torch.einsum("oc,bchw->bohw", matrix, image)
        if offset is not None:
            out = out + offset.view(1, -1, 1, 1)
        return out

    @staticmethod
    def setup_context(ctx, inputs, output):
        image, matrix = inputs[:2]
        ctx.has_offset = len(inputs) > 2 and inputs[2] is not None
        ctx.n_in = len(inputs)
        ctx.save_for_backward(image, matrix)

    @staticmethod
    def backward(ctx, grad):
        image, matrix = ctx.saved_tensors
        g_image = torch.einsum("oc,bohw->bchw", matrix, grad)
        g_matrix = torch.einsum("bohw,bchw->oc", grad, image)
        g_offset = grad.sum((0, 2, 3)) if ctx.has_offset else None
        return (g_image, g_matrix, g_offset)[: ctx.n_in]


class GlobalSSIM(Function):
    """SSIM of each channel with the whole image as its window -> (B, C)."""

    @staticmethod
    def _stats(x, y):
        n = x.shape[-1] * x.shape[-2]
        mx = x.mean((-2, -1), keepdim=True)
        my = y.mean((-2, -1), keepdim=True)
        dx, dy = x - mx, y - my
        vx = dx.pow(2).sum((-2, -1), keepdim=True) / (n - 1)
        vy = dy.pow(2).sum((-2, -1), keepdim=True) / (n - 1)
        cxy = (dx * dy).sum((-2, -1), keepdim=True) / (n - 1)
        return n, mx, my, dx, dy, vx, vy, cxy

    @staticmethod
    def forward(ctx, x, y, data_range: float = 1.0):
        assert x.shape == y.shape and x.dim() == 4
        ctx.c1, ctx.c2 = (0.01 * data_range) ** 2, (0.03 * data_range) ** 2
        ctx.save_for_backward(x, y)
        n, mx, my, dx, dy, vx, vy, cxy = GlobalSSIM._stats(x, y)
        num = (2 * mx * my + ctx.c1) * (2 * cxy + ctx.c2)
        den = (mx ** 2 + my ** 2 + ctx.c1) * (vx + vy + ctx.c2)
        return (num / den).flatten(1)

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        n, mx, my, dx, dy, vx, vy, cxy = GlobalSSIM._stats(x, y)
        a1, a2 = 2 * mx * my + ctx.c1, 2 * cxy + ctx.c2
        b1, b2 = mx ** 2 + my ** 2 + ctx.c1, vx + vy + ctx.c2
        s = a1 * a2 / (b1 * b2)
        g = grad[:, :, None, None]
        k = 2.0 / (n - 1)
        gx = (2 / n * my * a2 + k * dy * a1) / (b1 * b2) - s * (2 / n * mx / b1 + k * dx / b2)
        gy = (2 / n * mx * a2 + k * dx * a1) / (b1 * b2) - s * (2 / n * my / b1 + k * dy / b2)
        return g * gx, g * gy, None


class TotalVariation(Function):
    @staticmethod
    def forward(ctx, img, power=2, weight=1.0, reduction="sum"):
        """Anisotropic TV: weight * sum |d|^power over both image axes."""
        assert power in (1, 2), power
        if reduction not in ("sum", "mean"):
            raise ValueError(f"unknown reduction {reduction!r}")
        scale = weight / img.numel() if reduction == "mean" else weight
        dh = img[..., 1:, :] - img[..., :-1, :]
        dw = img[..., :, 1:] - img[..., :, :-1]
        ctx.save_for_backward(img)
        ctx.power = power
        ctx.scale = scale
        return scale * (dh.abs().pow(power).sum() + dw.abs().pow(power).sum())

    @staticmethod
    def backward(ctx, grad_output):
        img, = ctx.saved_tensors
        p = ctx.power
        dh = img[..., 1:, :] - img[..., :-1, :]
        dw = img[..., :, 1:] - img[..., :, :-1]
        sh = dh.sign() if p == 1 else 2 * dh
        sw = dw.sign() if p == 1 else 2 * dw
        g = F.pad(sh, (0, 0, 1, 0)) - F.pad(sh, (0, 0, 0, 1))
        g = g + F.pad(sw, (1, 0)) - F.pad(sw, (0, 1))
        return grad_output * ctx.scale * g, None, None, None


class BoxBlur1d(Function):
    """Moving mean along the last axis, same length, zero padded. Even k leans to the left."""

    @staticmethod
    def forward(ctx, x, k: int = 3):
        if k < 1:
            raise ValueError("k must be positive")
        lo = k // 2
        hi = k - 1 - lo
        ctx.k = k
        return F.pad(x, (lo, hi)).unfold(-1, k, 1).mean(-1)

    @staticmethod
    def backward(ctx, grad):
        k = ctx.k
        lo = k // 2
        hi = k - 1 - lo
        return F.pad(grad, (hi, lo)).unfold(-1, k, 1).mean(-1), None


class MaxPoolFlat(Function):
    """k x k max pooling (stride k) which also gives the flat positions, for unpooling."""

    @staticmethod
    def forward(ctx, x, k=2):
        N, C, H, W = x.shape
        assert H % k == 0 and W % k == 0, "size must be divisible by k"
        win = x.unfold(2, k, k).unfold(3, k, k).flatten(4)
        vals, arg = win.max(dim=-1)
        top = torch.arange(H // k, device=x.device).view(1, 1, -1, 1) * k
        lft = torch.arange(W // k, device=x.device).view(1, 1, 1, -1) * k
        flat = (top + arg // k) * W + lft + arg % k
        ctx.save_for_backward(x, flat)
        ctx.mark_non_differentiable(flat)
        return vals, flat

    @staticmethod
    def backward(ctx, g_vals, _g_flat):
        x, flat = ctx.saved_tensors
        N, C, H, W = x.shape
        gx = torch.zeros_like(x, memory_format=torch.contiguous_format).view(N * C, H * W)
        gx = gx.scatter_add(1, flat.reshape(N * C, -1), g_vals.reshape(N * C, -1))
        return gx.view(N, C, H, W), None


class LanczosKernel(Function):
    """Lanczos window sinc(x) sinc(x / a), for learned resampling positions."""

    @staticmethod
    def forward(ctx, x, a=3):
        ctx.save_for_backward(x)
        ctx.a = a
        return torch.sinc(x) * torch.sinc(x / a) * (x.abs() < a)

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        a = ctx.a
        s1, s2 = torch.sinc(x), torch.sinc(x / a)
        d1 = (torch.cos(math.pi * x) - s1) / x
        d2 = (torch.cos(math.pi * x / a) - s2) / x
        slope = d1 * s2 + s1 * d2
        slope = torch.where((x.abs() < a) & (x != 0), slope, torch.zeros_like(x))
        return grad_output * slope, None
