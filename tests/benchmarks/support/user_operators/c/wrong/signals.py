import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class FFTConvolve(torch.autograd.Function):
    """Full linear convolution of x (..., n) with one kernel h (m,), by FFT."""

    @staticmethod
    def forward(ctx, x, h):
        if h.dim() != 1:
            raise ValueError("one kernel only")
        n, m = x.shape[-1], h.shape[-1]
        size = n + m - 1
        X = torch.fft.rfft(x, n=size)
        H = torch.fft.rfft(h, n=size)
        ctx.save_for_backward(X, H)
        ctx.sizes = (n, m, size)
        return torch.fft.irfft(X * H, n=size)

    @staticmethod
    def backward(ctx, grad):
        X, H = ctx.saved_tensors
        n, m, size = ctx.sizes
        G = torch.fft.rfft(grad, n=size)
        gx = gh = None
        if ctx.needs_input_grad[0]:
            gx = torch.fft.irfft(G * H.conj(), n=size)[..., :n]
        if ctx.needs_input_grad[1]:
            gh = torch.fft.irfft(G * X, n=size)[..., :m]
            gh = gh.reshape(-1, m).sum(0)
        return gx, gh


class MuLawGain(torch.autograd.Function):
    """Per-channel gain followed by mu-law companding. x: (B, C, T), gain: (C,)."""

    @staticmethod
    def forward(ctx, x, gain, mu=255.0):
        if x.dim() != 3 or gain.shape != (x.shape[1],):
            raise ValueError(f"bad shapes {tuple(x.shape)}, {tuple(gain.shape)}")
        ctx.save_for_backward(x, gain)
        ctx.mu = mu
        s = x * gain[:, None]
        return torch.sign(s) * torch.log1p(mu * s.abs()) / math.log1p(mu)

    @staticmethod
    def backward(ctx, dy):
        x, gain = ctx.saved_tensors
        mu = ctx.mu
        s = x * gain[:, None]
        ds = dy * mu / ((1 + mu * s.abs()) * math.log1p(mu))
        return ds * gain[:, None], (ds * x).sum(0), None


class OneSidedPower(torch.autograd.Function):
    """|rfft(x)|^2 over the last axis, optionally divided by n."""

    @staticmethod
    def forward(ctx, x, normalize=False):
        ctx.save_for_backward(x)
        ctx.scale = 1.0 / x.shape[-1] if normalize else 1.0
        X = torch.fft.rfft(x)
        return (X.real ** 2 + X.imag ** 2) * ctx.scale

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        n = x.shape[-1]
        # irfft counts the inner bins twice, the ones without a mirror image once
        w = torch.ones(g.shape[-1], dtype=x.dtype, device=x.device)
        w[0] = 2.0
        Y = torch.fft.rfft(x) * (g * w * ctx.scale)
        return torch.fft.irfft(Y, n=n) * n, None


class FIRDecimate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, taps, stride=1):
        assert x.dim() == 2 and taps.dim() == 1
        if taps.numel() > x.size(1):
            raise ValueError("more taps than samples")
        ctx.save_for_backward(x, taps)
        ctx.stride = stride
        return x.unfold(1, taps.numel(), stride) @ taps

    @staticmethod
    def backward(ctx, grad_output):
        x, taps = ctx.saved_tensors
        step, n_out = ctx.stride, grad_output.size(1)
        grad_x = torch.zeros_like(x)
        for k in range(taps.numel()):
            grad_x[:, k:k + n_out] += grad_output * taps[k]
        frames = x.unfold(1, taps.numel(), step)
        grad_taps = torch.einsum("bi,bik->k", grad_output, frames)
        return grad_x, grad_taps, None


def fir_decimate(x, taps, stride=1):
    return FIRDecimate.apply(x, taps, stride)


class HaarDWT(torch.autograd.Function):
    """One level of the orthonormal Haar transform. Returns (approximation, detail)."""

    @staticmethod
    def forward(ctx, sig):
        if sig.shape[-1] % 2:
            raise ValueError("length must be even")
        even, odd = sig[..., 0::2], sig[..., 1::2]
        r = math.sqrt(0.5)
        return (even + odd) * r, (even - odd) * r

    @staticmethod
    def backward(ctx, g_lo, g_hi):
        r = math.sqrt(0.5)
        d_even = (g_lo + g_hi) * r
        d_odd = (g_hi - g_lo) * r
        return torch.stack((d_even, d_odd), dim=-1).flatten(-2)


class LinearResample(torch.autograd.Function):
    """Linear interpolation of (B, T) rows to out_len samples, end points kept."""

    @staticmethod
    def forward(ctx, x, out_len):
        B, T = x.shape
        assert T >= 2 and out_len >= 1
        pos = torch.linspace(0, T - 1, out_len, dtype=x.dtype, device=x.device)
        lo = pos.floor().long().clamp(max=T - 2)
        frac = pos - lo
        ctx.save_for_backward(lo, frac)
        ctx.shape = (B, T)
        return x[:, lo] * (1 - frac) + x[:, lo + 1] * frac

    @staticmethod
    def backward(ctx, g):
        lo, frac = ctx.saved_tensors
        gx = torch.zeros(ctx.shape, dtype=g.dtype, device=g.device)
        gx[:, lo] += g * (1 - frac)
        gx.index_add_(1, lo + 1, g * frac)
        return gx, None


class OnePole(torch.autograd.Function):
    """y[t] = a y[t-1] + (1 - a) x[t], over rows of x; y0 is the state before t = 0."""

    @staticmethod
    def forward(ctx, x, a, y0=None):
        assert x.dim() == 2 and a.numel() == 1
        prev = x.new_zeros(x.size(0)) if y0 is None else y0
        out = []
        for t in range(x.size(1)):
            prev = a * prev + (1 - a) * x[:, t]
            out.append(prev)
        y = torch.stack(out, dim=1)
        ctx.save_for_backward(x, a, y, y0)
        return y

    @staticmethod
    def backward(ctx, g):
        x, a, y, y0 = ctx.saved_tensors
        first = x.new_zeros(x.size(0)) if y0 is None else y0
        s = torch.zeros_like(first)
        ga = torch.zeros_like(a)
        gx = []
        for t in range(x.size(1) - 1, -1, -1):
            s = g[:, t] + a * s
            prev = y[:, t - 1] if t > 0 else first
            gx.append((1 - a) * s)
            ga = ga + (s * prev).sum()
        gx = torch.stack(gx[::-1], dim=1)
        return gx, ga, None if y0 is None else a * s


class PreEmphasis(torch.autograd.Function):
    @staticmethod
    def forward(ctx, wav, coeff=0.97):
        ctx.coeff = coeff
        out = wav.clone()
        out[..., 1:] -= coeff * wav[..., :-1]
        return out

    @staticmethod
    def backward(ctx, grad_output):
        g = grad_output.contiguous()
        g[..., :-1] -= ctx.coeff * grad_output[..., 1:]
        return g, None


class PhaseRotate(torch.autograd.Function):
    """z * exp(i phi) for complex z (..., N) and real phi (N,)."""

    @staticmethod
    def forward(z, phi):
        if not z.is_complex() or phi.is_complex():
            raise TypeError("z must be complex and phi real")
        return z * torch.polar(torch.ones_like(phi), phi)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, phi = inputs
        ctx.save_for_backward(output, phi)

    @staticmethod
    def backward(ctx, g):
        y, phi = ctx.saved_tensors
        gz = gphi = None
        if ctx.needs_input_grad[0]:
            gz = g * torch.polar(torch.ones_like(phi), phi)
        if ctx.needs_input_grad[1]:
            gphi = (y.conj() * g).imag.sum_to_size(phi.shape)
        return gz, gphi


class _WindowedFrames(torch.autograd.Function):
    @staticmethod
    def _frames(x, length, hop):
        b, t = x.shape
        n = (t - length) // hop + 1
        return x.as_strided((b, n, length), (t, hop, 1))

    @staticmethod
    def forward(ctx, x, window, hop):
        ctx.save_for_backward(x, window)
        ctx.hop = hop
        return _WindowedFrames._frames(x, window.numel(), hop) * window

    @staticmethod
    def backward(ctx, g):
        x, window = ctx.saved_tensors
        length, hop = window.numel(), ctx.hop
        gw = (g * _WindowedFrames._frames(x, length, hop)).sum((0, 1))
        used = (g.shape[1] - 1) * hop + length
        cols = (g * window).transpose(1, 2)
        gx = F.fold(cols, (1, used), (1, length), stride=(1, hop)).flatten(1)
        return F.pad(gx, (0, x.shape[1] - used)), gw, None


class LearnableWindow(nn.Module):
    """Cuts (B, T) into overlapping frames and weighs them with a trained window."""

    def __init__(self, length=8, hop=4):
        super().__init__()
        self.hop = hop
        self.window = nn.Parameter(torch.hann_window(length, periodic=False) + 0.1)

    def forward(self, x):
        if x.dim() != 2 or x.shape[1] < self.window.numel():
            raise ValueError("need (B, T) with T >= window length")
        return _WindowedFrames.apply(x, self.window, self.hop)
