"""Convolution, pooling, padding and resampling ops with explicit gradients."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Function


class DepthwiseConv1d(Function):
    """Depthwise 1-d convolution, x: (B, C, L), w: (C, K)."""

    @staticmethod
    def forward(ctx, x, w, stride=1, padding=0):
        if x.size(1) != w.size(0):
            raise ValueError(f"channels of x ({x.size(1)}) and w ({w.size(0)}) differ")
        ctx.save_for_backward(x, w)
        ctx.stride, ctx.padding = stride, padding
        win = F.pad(x, (padding, padding)).unfold(2, w.size(1), stride)
        return torch.einsum("bclk,ck->bcl", win, w)

    @staticmethod
    def backward(ctx, grad_out):
        x, w = ctx.saved_tensors
        s, p = ctx.stride, ctx.padding
        xp = F.pad(x, (p, p))
        grad_w = torch.einsum("bcl,bclk->ck", grad_out, xp.unfold(2, w.size(1), s))
        grad_xp = torch.zeros_like(xp)
        span = s * (grad_out.size(2) - 1) + 1
        for k in range(w.size(1)):
            grad_xp[:, :, k:k + span:s] += grad_out * w[:, k].unsqueeze(-1)
        grad_x = grad_xp[:, :, p:p + x.size(2)]
        return grad_x, grad_w, None, None


class Conv2dUnfold(Function):
    @staticmethod
    def forward(x, weight, bias=None, stride=1, padding=0, dilation=1):
        out_c, _, kh, kw = weight.shape
        cols = F.unfold(x, (kh, kw), dilation, padding, stride)
        out = weight.reshape(out_c, -1) @ cols
        if bias is not None:
            out = out + bias.view(1, -1, 1)
        ho = (x.size(2) + 2 * padding - dilation * (kh - 1) - 1) // stride + 1
        wo = (x.size(3) + 2 * padding - dilation * (kw - 1) - 1) // stride + 1
        return out.view(x.size(0), out_c, ho, wo)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, weight, bias, stride, padding, dilation = inputs
        ctx.save_for_backward(x, weight)
        ctx.conf = (dilation, padding, stride)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        out_c, _, kh, kw = weight.shape
        grad_x = grad_w = grad_b = None
        g = grad_output.flatten(2)
        if ctx.needs_input_grad[0]:
            cols = weight.reshape(out_c, -1).t() @ g
            grad_x = F.fold(cols, x.shape[2:], (kh, kw), *ctx.conf)
        if ctx.needs_input_grad[1]:
            cols = F.unfold(x, (kh, kw), *ctx.conf)
            grad_w = torch.einsum("bol,bkl->ok", g, cols).view_as(weight)
        if ctx.needs_input_grad[2]:
            grad_b = g.sum((0, 2))
        return grad_x, grad_w, grad_b, None, None, None


class LPPool1d(Function):
    """Power-average pooling over the last axis: (sum |x|^p)^(1/p)."""

    @staticmethod
    def forward(ctx, x, p=2.0, kernel_size=2, stride=None):
        if p < 1:
            raise ValueError("p must be at least 1")
        stride = stride or kernel_size
        win = x.unfold(-1, kernel_size, stride)
        out = win.abs().pow(p).sum(-1).pow(1.0 / p)
        ctx.save_for_backward(x, out)
        ctx.p, ctx.kernel_size, ctx.stride = p, kernel_size, stride
        return out

    @staticmethod
    def backward(ctx, g):
        x, out = ctx.saved_tensors
        p, s = ctx.p, ctx.stride
        coef = g * torch.where(out > 0, out, torch.ones_like(out)).pow(1 - p)
        gx = torch.zeros_like(x)
        span = s * (out.size(-1) - 1) + 1
        for k in range(ctx.kernel_size):
            xs = x[..., k:k + span:s]
            gx[..., k:k + span:s] += coef * xs.sign() * xs.abs().pow(p - 1)
        return gx, None, None, None


class MaxPool1dIdx(Function):
    """Max pooling over (B, C, L) that also gives back the positions of the maxima."""

    @staticmethod
    def forward(ctx, x: torch.Tensor, kernel_size: int = 3, stride: int = 1):
        assert x.dim() == 3, "expected (batch, channels, length)"
        val, arg = x.unfold(2, kernel_size, stride).max(dim=-1)
        idx = arg + stride * torch.arange(val.size(2), device=x.device)
        ctx.save_for_backward(idx)
        ctx.shape = x.shape
        ctx.mark_non_differentiable(idx)
        return val, idx

    @staticmethod
    def backward(ctx, grad_val, _grad_idx):
        (idx,) = ctx.saved_tensors
        grad_x = grad_val.new_zeros(ctx.shape).scatter_add_(2, idx, grad_val)
        return grad_x, None, None


class OverlapAdd(Function):
    """frames (B, N, W) -> signal (B, (N-1)*hop + W), each frame times `window` if given."""

    @staticmethod
    def forward(ctx, frames, window=None, hop=1):
        b, n, w = frames.shape
        fr = frames if window is None else frames * window
        sig = frames.new_zeros(b, (n - 1) * hop + w)
        for i in range(n):
            sig[:, i * hop:i * hop + w] += fr[:, i]
        ctx.save_for_backward(frames, window)
        ctx.hop = hop
        return sig

    @staticmethod
    def backward(ctx, g):
        frames, window = ctx.saved_tensors
        gf = g.unfold(1, frames.size(2), ctx.hop)
        if window is None:
            return gf, None, None
        gw = (gf * frames).sum((0, 1))
        return gf * window, gw, None


def _linear_taps(length, out_length, ref, align_corners=False):
    i = torch.arange(out_length, dtype=ref.dtype, device=ref.device)
    if align_corners:
        src = i * (length - 1) / max(out_length - 1, 1)
    else:
        src = ((i + 0.5) * length / out_length - 0.5).clamp(min=0)
    lo = src.floor().long().clamp(max=length - 1)
    hi = (lo + 1).clamp(max=length - 1)
    return lo, hi, src - lo


class LinearUpsample1d(Function):
    @staticmethod
    def forward(ctx, x, scale: int = 2, align_corners: bool = False):
        ctx.length, ctx.align_corners = x.size(-1), align_corners
        lo, hi, f = _linear_taps(x.size(-1), x.size(-1) * scale, x, align_corners)
        return x[..., lo] * (1 - f) + x[..., hi] * f

    @staticmethod
    def backward(ctx, g):
        lo, hi, f = _linear_taps(ctx.length, g.size(-1), g, ctx.align_corners)
        gx = g.new_zeros(*g.shape[:-1], ctx.length)
        gx.index_add_(g.dim() - 1, lo, g * (1 - f))
        gx.index_add_(g.dim() - 1, hi, g * f)
        return gx, None, None


def _corners(pts, h, w):
    x0 = pts[:, 0].detach().floor().clamp(0, w - 2)
    y0 = pts[:, 1].detach().floor().clamp(0, h - 2)
    fx, fy = pts[:, 0] - x0, pts[:, 1] - y0
    return (y0 * w + x0).long(), fx, fy


class BilinearSample(Function):
    """Samples img (C, H, W) at pts (N, 2) = (x, y) in pixels, 0 <= x <= W-1, 0 <= y <= H-1."""

    @staticmethod
    def forward(ctx, img, pts):
        c, h, w = img.shape
        ctx.save_for_backward(img, pts)
        i, fx, fy = _corners(pts, h, w)
        flat = img.reshape(c, -1)
        top = flat[:, i] * (1 - fx) + flat[:, i + 1] * fx
        bot = flat[:, i + w] * (1 - fx) + flat[:, i + w + 1] * fx
        return top * (1 - fy) + bot * fy

    @staticmethod
    def backward(ctx, g):
        img, pts = ctx.saved_tensors
        c, h, w = img.shape
        i, fx, fy = _corners(pts, h, w)
        grad_img = img.new_zeros(img.shape)
        acc = grad_img.reshape(c, -1)
        acc.index_add_(1, i, g * (1 - fx) * (1 - fy))
        acc.index_add_(1, i + 1, g * fx * (1 - fy))
        acc.index_add_(1, i + w, g * (1 - fx) * fy)
        acc.index_add_(1, i + w + 1, g * fx * fy)
        flat = img.reshape(c, -1)
        v00, v01, v10, v11 = flat[:, i], flat[:, i + 1], flat[:, i + w], flat[:, i + w + 1]
        gx = (g * ((v01 - v00) * (1 - fy) + (v11 - v10) * fy)).sum(0)
        gy = (g * ((v10 - v00) * (1 - fx) + (v11 - v01) * fx)).sum(0)
        return grad_img, torch.stack([gx, gy], dim=1)


class ReflectPad1d(Function):
    """Reflection padding of the last axis (the edge value is not repeated)."""

    @staticmethod
    def forward(ctx, x, pad: list):
        n = x.size(-1)
        left, right = pad
        if left >= n or right >= n:
            raise ValueError("padding must be smaller than the input")
        ctx.pads, ctx.n = (left, right), n
        head = x[..., 1:left + 1].flip(-1)
        tail = x[..., n - 1 - right:n - 1].flip(-1)
        return torch.cat([head, x, tail], dim=-1)

    @staticmethod
    def backward(ctx, g):
        (left, right), n = ctx.pads, ctx.n
        gx = g[..., left:left + n].clone()
        gx[..., 1:left + 1] += g[..., :left].flip(-1)
        gx[..., n - 1 - right:n - 1] += g[..., left + n:].flip(-1)
        return gx, None


class _Blur(Function):
    @staticmethod
    def forward(ctx, x, kernel, stride):
        ctx.save_for_backward(kernel)
        ctx.shape, ctx.stride = x.shape, stride
        w = kernel.expand(x.size(1), 1, 3, 3)
        return F.conv2d(F.pad(x, (1, 1, 1, 1), mode="replicate"), w, stride=stride, groups=x.size(1))

    @staticmethod
    def backward(ctx, g):
        (kernel,) = ctx.saved_tensors
        _, c, h, w = ctx.shape
        s = ctx.stride
        opad = ((h - 1) % s, (w - 1) % s)
        gp = F.conv_transpose2d(g, kernel.expand(c, 1, 3, 3), stride=s, output_padding=opad, groups=c)
        gp[:, :, 1] += gp[:, :, 0]
        gp[:, :, -2] += gp[:, :, -1]
        gp[..., 1] += gp[..., 0]
        gp[..., -2] += gp[..., -1]
        return gp[:, :, 1:-1, 1:-1], None, None


class BlurPool(nn.Module):
    """Anti-aliased downsampling of (B, C, H, W) with a 3x3 binomial filter."""

    def __init__(self, stride=2):
        super().__init__()
        row = torch.tensor([1.0, 2.0, 1.0])
        self.register_buffer("kernel", row[:, None] * row[None, :] / 16.0)
        self.stride = stride

    def forward(self, x):
        return _Blur.apply(x, self.kernel, self.stride)


class FFTConv1d(Function):
    """Causal long convolution through the FFT. u: (B, C, L), k: (C, M)."""

    @staticmethod
    def forward(ctx, u, k):
        n = u.size(-1) + k.size(-1) - 1
        ctx.save_for_backward(u, k)
        y = torch.fft.irfft(torch.fft.rfft(u, n=n) * torch.fft.rfft(k, n=n), n=n)
        return y[..., :u.size(-1)]

    @staticmethod
    def backward(ctx, dy):
        u, k = ctx.saved_tensors
        n = u.size(-1) + k.size(-1) - 1
        dy_f = torch.fft.rfft(dy, n=n)
        k_f = torch.fft.rfft(k, n=n)
        u_f = torch.fft.rfft(u, n=n)
        du = torch.fft.irfft(dy_f * k_f.conj(), n=n)[..., :u.size(-1)]
        dk = torch.fft.irfft((dy_f * u_f.conj()).sum(0), n=n)[..., :k.size(-1)]
        return du, dk


def reflect_pad(x, pad):
    return ReflectPad1d.apply(x, [pad, pad])
