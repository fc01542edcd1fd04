"""Audio front-end operators."""

import torch
import torch.nn as nn
from torch.autograd import Function


def _frame_index(length, size, hop, device=None):
    return torch.arange(length, device=device).unfold(0, size, hop)


class StftMagnitude(Function):
    """Magnitude spectrogram (B, frames, n//2+1) of x (B, T), no centring.

    window (n,) sets the frame size; normalized divides the transform by sqrt(n).
    """

    @staticmethod
    def forward(ctx, x, window, hop=4, normalized=False, eps=1e-6):
        n = window.numel()
        if x.dim() != 2 or x.shape[1] < n:
            raise ValueError("x must be (B, T) with T not shorter than the window")
        scale = n**-0.5 if normalized else 1.0
        frames = x.unfold(1, n, hop) * window
        spec = torch.fft.rfft(frames) * scale
        ctx.save_for_backward(x, window)
        ctx.hop, ctx.scale, ctx.eps = hop, scale, eps
        return (spec.real**2 + spec.imag**2 + eps).sqrt()

    @staticmethod
    def backward(ctx, grad):
        x, window = ctx.saved_tensors
        n = window.numel()
        idx = _frame_index(x.shape[1], n, ctx.hop, x.device)
        raw = x[:, idx]
        spec = torch.fft.rfft(raw * window) * ctx.scale
        mag = (spec.real**2 + spec.imag**2 + ctx.eps).sqrt()
        g_frames = torch.fft.ifft(spec * (grad / mag), n=n).real * (n * ctx.scale)
        g_x = g_win = None
        if ctx.needs_input_grad[0]:
            flat = (g_frames * window).reshape(x.shape[0], -1)
            g_x = torch.zeros_like(x).index_add(1, idx.reshape(-1), flat)
        if ctx.needs_input_grad[1]:
            g_win = (g_frames * raw).sum((0, 1))
        return g_x, g_win, None, None, None


class LogMel(Function):
    """log(max(fb^T spec, floor)) for spec (B, F, T) and filter bank fb (F, M)."""

    @staticmethod
    def forward(ctx, spec, fb, floor=1e-5):
        assert spec.dim() == 3 and fb.shape[0] == spec.shape[1]
        ctx.save_for_backward(spec, fb)
        ctx.floor = floor
        return torch.matmul(fb.t(), spec).clamp(min=floor).log()

    @staticmethod
    def backward(ctx, grad):
        spec, fb = ctx.saved_tensors
        mel = torch.matmul(fb.t(), spec)
        g_mel = grad * (mel > ctx.floor) / mel.clamp(min=ctx.floor)
        return torch.matmul(fb, g_mel), torch.einsum("bft,bmt->fm", spec, g_mel), None


class Biquad(Function):
    """Second-order IIR section on x (B, T): b (3,) feed-forward, a (2,) feedback (a0 = 1)."""

    @staticmethod
    def _back(z, k):
        # z delayed by k samples
        return torch.cat([torch.zeros_like(z[:, :k]), z[:, : z.shape[1] - k]], dim=1)

    @staticmethod
    def forward(ctx, x, b, a):
        fir = b[0] * x + b[1] * Biquad._back(x, 1) + b[2] * Biquad._back(x, 2)
        y1 = y2 = torch.zeros_like(x[:, 0])
        out = []
        for t in range(x.shape[1]):
            y1, y2 = fir[:, t] - a[0] * y1 - a[1] * y2, y1
            out.append(y1)
        y = torch.stack(out, dim=1)
        ctx.save_for_backward(x, b, a, y)
        return y

    @staticmethod
    def backward(ctx, gy):
        x, b, a, y = ctx.saved_tensors
        l1 = l2 = torch.zeros_like(gy[:, 0])
        lam = []
        for t in range(gy.shape[1] - 1, -1, -1):
            l1, l2 = gy[:, t] - a[0] * l1 - a[1] * l2, l1
            lam.append(l1)
        rev = torch.stack(lam, dim=1)
        lam = rev.flip(1)
        gx = b[0] * rev + b[1] * Biquad._back(rev, 1) + b[2] * Biquad._back(rev, 2)
        gb = torch.stack([(lam * Biquad._back(x, k)).sum() for k in (0, 1, 2)])
        ga = torch.stack([-(lam * Biquad._back(y, k)).sum() for k in (1, 2)])
        return gx.flip(1), gb, ga


class PreEmphasis(Function):
    """y[t] = x[t] - coef * x[t-1] over the last axis, first sample kept."""

    @staticmethod
    def forward(ctx, x, coef=0.97):
        ctx.coef = coef
        y = x.clone()
        y[..., 1:] -= coef * x[..., :-1]
        return y

    @staticmethod
    def backward(ctx, gy):
        gx = gy.clone()
        gx[..., :-1] -= ctx.coef * gy[..., 1:]
        return gx, None


class SpectrumPhase(Function):
    """Phase angle of a complex spectrum."""

    @staticmethod
    def forward(ctx, z, eps=1e-20):
        if not z.is_complex():
            raise TypeError("SpectrumPhase expects a complex tensor")
        ctx.save_for_backward(z)
        ctx.eps = eps
        return torch.angle(z)

    @staticmethod
    def backward(ctx, grad_phase):
        (z,) = ctx.saved_tensors
        power = (z.real**2 + z.imag**2).clamp_min(ctx.eps)
        return 1j * z * (grad_phase / power), None


class ComplexRatioMask(Function):
    """Apply a bounded complex mask to a spectrogram; all three have the same shape."""

    @staticmethod
    def forward(ctx, spec, m_re, m_im, bound=2.0):
        ctx.save_for_backward(spec, m_re, m_im)
        ctx.bound = bound
        return spec * torch.complex(bound * m_re.tanh(), bound * m_im.tanh())

    @staticmethod
    def backward(ctx, grad):
        spec, m_re, m_im = ctx.saved_tensors
        tr, ti = m_re.tanh(), m_im.tanh()
        mask = torch.complex(ctx.bound * tr, ctx.bound * ti)
        g_spec = grad * mask.conj()
        g_mask = grad * spec.conj()
        g_re = ctx.bound * (1 - tr**2) * g_mask.real
        g_im = ctx.bound * (1 - ti**2) * g_mask.imag
        return g_spec, g_re, g_im, None


class FrameSignal(Function):
    """Cut x (B, T) into overlapping frames (B, n, size); the rest is dropped."""

    @staticmethod
    def forward(ctx, x, size=4, hop=2):
        assert x.dim() == 2 and x.shape[1] >= size
        ctx.shape, ctx.size, ctx.hop = x.shape, size, hop
        n = 1 + (x.shape[1] - size) // hop
        row, col = x.stride()
        strides = (row, hop * col, col)
        return x.as_strided((x.shape[0], n, size), strides).clone()

    @staticmethod
    def backward(ctx, grad):
        idx = _frame_index(ctx.shape[1], ctx.size, ctx.hop, grad.device)
        gx = grad.new_zeros(ctx.shape)
        return (
            gx.index_add(1, idx.reshape(-1), grad.reshape(ctx.shape[0], -1)),
            None,
            None,
        )


class FractionalDelay(Function):
    """Delay each row of x (B, T) by delay (B,) samples with linear interpolation."""

    @staticmethod
    def taps(x, delay):
        T = x.shape[1]
        pos = torch.arange(T, dtype=x.dtype, device=x.device) - delay.unsqueeze(1)
        i0 = pos.detach().floor().long()
        i1 = i0 + 1
        ok0 = ((i0 >= 0) & (i0 < T)).to(x.dtype)
        ok1 = ((i1 >= 0) & (i1 < T)).to(x.dtype)
        return pos - i0, i0.clamp(0, T - 1), i1.clamp(0, T - 1), ok0, ok1

    @staticmethod
    def forward(ctx, x, delay):
        frac, i0, i1, ok0, ok1 = FractionalDelay.taps(x, delay)
        ctx.save_for_backward(x, delay)
        return (1 - frac) * ok0 * x.gather(1, i0) + frac * ok1 * x.gather(1, i1)

    @staticmethod
    def backward(ctx, grad):
        x, delay = ctx.saved_tensors
        frac, i0, i1, ok0, ok1 = FractionalDelay.taps(x, delay)
        gx = torch.zeros_like(x)
        gx = gx.scatter_add(1, i0, grad * (1 - frac) * ok0)
        gx = gx.scatter_add(1, i1, grad * frac * ok1)
        rise = ok1 * x.gather(1, i1) - ok0 * x.gather(1, i0)
        return gx, -(grad * rise).sum(1)


class EnvelopeFollower(Function):
    """Peak envelope of x (B, T) with scalar attack and release coefficients in (0, 1)."""

    @staticmethod
    def forward(ctx, x, attack, release):
        env = torch.zeros_like(x[:, 0])
        out = []
        for t in range(x.shape[1]):
            level = x[:, t].abs()
            c = torch.where(level > env, attack, release)
            env = c * env + (1 - c) * level
            out.append(env)
        env = torch.stack(out, dim=1)
        ctx.save_for_backward(x, attack, release, env)
        return env

    @staticmethod
    def backward(ctx, g_env):
        x, attack, release, env = ctx.saved_tensors
        prev = torch.cat([torch.zeros_like(env[:, :1]), env[:, :-1]], dim=1)
        rising = x.abs() > prev
        c = torch.where(rising, attack, release)
        lam, run = [], torch.zeros_like(g_env[:, 0])
        for t in reversed(range(x.shape[1])):
            run = run + g_env[:, t]
            lam.append(run)
            run = run * c[:, t]
        lam = torch.stack(lam[::-1], dim=1)
        g_c = lam * (prev - x.abs())
        return lam * (1 - c) * x.sign(), (g_c * rising).sum(), (g_c * ~rising).sum()


class _PcenFn(Function):
    @staticmethod
    def forward(ctx, energy, smooth, alpha, delta, r, eps):
        a, d, p = alpha[:, None], delta[:, None], r[:, None]
        ctx.save_for_backward(energy, smooth, alpha, delta, r)
        ctx.eps = eps
        return (energy * (smooth + eps) ** -a + d) ** p - d**p

    @staticmethod
    def backward(ctx, g):
        energy, smooth, alpha, delta, r = ctx.saved_tensors
        a, d, p = alpha[:, None], delta[:, None], r[:, None]
        floor = smooth + ctx.eps
        gain = floor**-a
        u = energy * gain + d
        g_u = g * p * u ** (p - 1)
        g_energy = g_u * gain
        g_smooth = -g_u * energy * gain * a / floor
        g_alpha = -(g_u * energy * gain * floor.log()).sum(dim=(0, 2))
        g_delta = (g_u - g * p * d ** (p - 1)).sum(dim=(0, 2))
        g_r = (g * (u**p * u.log() - d**p * d.log())).sum(dim=(0, 2))
        return g_energy, g_smooth, g_alpha, g_delta, g_r, None


class Pcen(nn.Module):
    """Per-channel energy normalisation of a non-negative (B, C, T) spectrogram."""

    def __init__(self, channels, s=0.2, eps=1e-6):
        super().__init__()
        self.s, self.eps = s, eps
        self.alpha = nn.Parameter(torch.full((channels,), 0.9))
        self.delta = nn.Parameter(torch.full((channels,), 2.0))
        self.r = nn.Parameter(torch.full((channels,), 0.5))

    def forward(self, energy):
        m, smooth = energy[..., 0], []
        for t in range(energy.shape[-1]):
            m = (1 - self.s) * m + self.s * energy[..., t]
            smooth.append(m)
        smooth = torch.stack(smooth, dim=-1)
        return _PcenFn.apply(energy, smooth, self.alpha, self.delta, self.r, self.eps)
