"""Operators for speech front ends and enhancement."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class DeEmphasis(Function):
    """First-order recursion y[t] = x[t] + coef * y[t-1] along the last axis."""

    @staticmethod
    def forward(x, coef, zi=None):
        if x.shape[-1] == 0:
            raise ValueError("need at least one sample")
        state = torch.zeros_like(x[..., 0]) if zi is None else zi
        out = []
        for sample in x.unbind(-1):
            state = sample + coef * state
            out.append(state)
        return torch.stack(out, -1), state.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, coef, zi = inputs
        ctx.save_for_backward(coef, zi, output[0])
        ctx.save_for_forward(coef, zi, output[0])

    @staticmethod
    def backward(ctx, grad_y, grad_last):
        coef, zi, y = ctx.saved_tensors
        carry = grad_last
        grad_x = []
        for g in reversed(grad_y.unbind(-1)):
            carry = g + carry
            grad_x.append(carry)
            carry = coef * carry
        grad_x = torch.stack(grad_x[::-1], -1)
        grad_coef = grad_zi = None
        if ctx.needs_input_grad[1]:
            per_row = (grad_x[..., 1:] * y[..., :-1]).sum(-1)
            if zi is not None:
                per_row = per_row + grad_x[..., 0] * zi
            grad_coef = per_row.sum_to_size(coef.shape)
        if zi is not None and ctx.needs_input_grad[2]:
            grad_zi = carry.sum_to_size(zi.shape)
        return grad_x, grad_coef, grad_zi

    @staticmethod
    def jvp(ctx, dx, dcoef, dzi):
        coef, zi, y = ctx.saved_tensors
        past = torch.zeros_like(y[..., 0]) if zi is None else zi
        tangent = torch.zeros_like(y[..., 0]) if dzi is None else dzi
        out = []
        for t in range(y.shape[-1]):
            tangent = coef * tangent
            if dx is not None:
                tangent = tangent + dx[..., t]
            if dcoef is not None:
                tangent = tangent + dcoef * past
            past = y[..., t]
            out.append(tangent)
        return torch.stack(out, -1), tangent.clone()


def _add_frames(frames, hop):
    count, width = frames.shape[-2:]
    out = frames.new_zeros(*frames.shape[:-2], (count - 1) * hop + width)
    for f in range(count):
        out[..., f * hop : f * hop + width] += frames[..., f, :]
    return out


class OverlapAdd(Function):
    @staticmethod
    def forward(ctx, frames, window, hop, normalize=False, eps=1e-8):
        if frames.dim() != 3 or window.shape != frames.shape[-1:]:
            raise ValueError("frames must be (batch, count, width) and match the window")
        if hop < 1:
            raise ValueError("hop must be positive")
        signal = _add_frames(frames * window, hop)
        if normalize:
            power = window.square().expand(frames.shape[1], -1)
            signal = signal / (_add_frames(power, hop) + eps)
        ctx.save_for_backward(frames, window)
        ctx.hop, ctx.normalize, ctx.eps = hop, normalize, eps
        return signal

    @staticmethod
    def backward(ctx, grad):
        frames, window = ctx.saved_tensors
        hop = ctx.hop
        width = window.shape[0]
        grad_power = None
        if ctx.normalize:
            power = window.square().expand(frames.shape[1], -1)
            level = _add_frames(power, hop) + ctx.eps
            grad = grad / level
            signal = _add_frames(frames * window, hop)
            grad_power = -(grad * signal / level).sum(0)
        pieces = grad.unfold(-1, width, hop)
        grad_window = None
        if ctx.needs_input_grad[1]:
            grad_window = (pieces * frames).sum((0, 1))
            if grad_power is not None:
                grad_window = grad_window + 2 * window * grad_power.unfold(0, width, hop).sum(0)
        return pieces * window, grad_window, None, None, None


def _toeplitz_index(n, device):
    i = torch.arange(n, device=device)
    return (i[:, None] - i).abs()


class LevinsonLpc(Function):
    """Linear prediction from autocorrelations r (B, p + 1).

    The zero lag is raised by the factor 1 + ridge inside the normal equations. Returns predictor
    coefficients (B, p) and the residual r[0] - a . r[1:] (B,).
    """

    @staticmethod
    def forward(ctx, r, ridge=0.0):
        if r.dim() != 2 or r.shape[1] < 2:
            raise ValueError("r must be (batch, order + 1) with order at least one")
        if bool((r[:, 0] <= 0).any()):
            raise ValueError("the zero lag must be positive")
        order = r.shape[1] - 1
        energy = r[:, 0] * (1 + ridge)
        a = r.new_zeros(r.shape[0], order)
        for m in range(order):
            known = a[:, :m].clone()
            miss = r[:, m + 1] - (known * r[:, 1 : m + 1].flip(1)).sum(1)
            reflect = miss / energy
            a[:, :m] = known - reflect[:, None] * known.flip(1)
            a[:, m] = reflect
            energy = energy * (1 - reflect.square())
        ctx.save_for_backward(r, a)
        ctx.ridge = ridge
        return a, r[:, 0] - (a * r[:, 1:]).sum(1)

    @staticmethod
    def backward(ctx, grad_a, grad_err):
        r, a = ctx.saved_tensors
        order = a.shape[1]
        lag = _toeplitz_index(order, r.device)
        eye = torch.eye(order, dtype=r.dtype, device=r.device)
        normal = r[:, lag] + ctx.ridge * r[:, :1, None] * eye
        total = grad_a - grad_err[:, None] * r[:, 1:]
        z = torch.linalg.solve(normal, total)
        outer = z[:, :, None] * a[:, None, :]
        grad_r = torch.cat((grad_err[:, None], z - grad_err[:, None] * a), 1)
        grad_r = grad_r.index_add(1, lag.reshape(-1), -outer.flatten(1))
        loading = -ctx.ridge * (z * a).sum(1, keepdim=True)
        grad_r = torch.cat((grad_r[:, :1] + loading, grad_r[:, 1:]), 1)
        return grad_r, None


def _power(spec, power):
    square = spec.real.square() + spec.imag.square()
    if power == 2:
        return square
    positive = square > 0
    safe = torch.where(positive, square, torch.ones_like(square))
    return torch.where(positive, safe.pow(power / 2), torch.zeros_like(square))


class LogMel(Function):
    @staticmethod
    def forward(ctx, spec, bank, power=2.0, floor=1e-6):
        if not spec.is_complex():
            raise TypeError("spec must be complex")
        if spec.dim() != 3 or bank.dim() != 2:
            raise ValueError("spec must be (batch, bins, time) and bank (mels, bins)")
        if power < 1 or floor <= 0:
            raise ValueError("power must be at least one and floor positive")
        mel = bank @ _power(spec, power)
        ctx.save_for_backward(spec, bank)
        ctx.power, ctx.floor = power, floor
        return (mel + floor).log()

    @staticmethod
    def backward(ctx, grad):
        spec, bank = ctx.saved_tensors
        energy = _power(spec, ctx.power)
        grad_mel = grad / (bank @ energy + ctx.floor)
        grad_spec = grad_bank = None
        if ctx.needs_input_grad[0]:
            grad_energy = bank.T @ grad_mel
            if ctx.power == 2:
                grad_spec = 2 * grad_energy * spec
            else:
                square = spec.real.square() + spec.imag.square()
                positive = square > 0
                safe = torch.where(positive, square, torch.ones_like(square))
                slope = ctx.power * safe.pow(ctx.power / 2 - 1)
                slope = torch.where(positive, slope, torch.zeros_like(slope))
                grad_spec = grad_energy * slope * spec
        if ctx.needs_input_grad[1]:
            grad_bank = (grad_mel @ energy.mT).sum(0)
        return grad_spec, grad_bank, None, None


class MaskedCmvn(Function):
    """Mean and variance normalisation over the valid frames of each utterance."""

    @staticmethod
    def forward(ctx, feats, lengths, norm_var=True, eps=1e-5):
        if int(lengths.min()) < 1 or int(lengths.max()) > feats.shape[1]:
            raise ValueError("lengths must lie between 1 and the number of frames")
        ctx.save_for_backward(feats, lengths)
        ctx.norm_var, ctx.eps = norm_var, eps
        _, _, centred, scale = MaskedCmvn._moments(feats, lengths, eps)
        return centred / scale if norm_var else centred

    @staticmethod
    def _moments(feats, lengths, eps):
        frame = torch.arange(feats.shape[1], device=feats.device)
        keep = (frame < lengths[:, None]).unsqueeze(-1)
        count = lengths[:, None, None].to(feats.dtype)
        zero = feats.new_zeros(())
        mean = torch.where(keep, feats, zero).sum(1, keepdim=True) / count
        centred = torch.where(keep, feats - mean, zero)
        scale = (centred.square().sum(1, keepdim=True) / count + eps).sqrt()
        return keep, count, centred, scale

    @staticmethod
    def backward(ctx, grad_out):
        feats, lengths = ctx.saved_tensors
        keep, count, centred, scale = MaskedCmvn._moments(feats, lengths, ctx.eps)
        grad_out = torch.where(keep, grad_out, grad_out.new_zeros(()))
        grad = grad_out - grad_out.sum(1, keepdim=True) / count
        if ctx.norm_var:
            unit = centred / scale
            grad = (grad - unit * (grad_out * unit).sum(1, keepdim=True) / count) / scale
        return torch.where(keep, grad, grad.new_zeros(())), None, None, None


class BoundedRatioMask(Function):
    """Apply a complex ratio mask whose magnitude is squashed to ``bound * tanh(slope * |m|)``.

    Args:
        mix: complex mixture spectrogram.
        mask: complex mask, broadcastable against ``mix``.
        bound: largest magnitude of the effective mask.
        slope: gain at the origin, relative to ``bound``.
    """

    @staticmethod
    def _shape(mask, bound, slope):
        r = mask.abs()
        small = slope * r < 1e-3
        safe = torch.where(small, torch.ones_like(r), r)
        t = torch.tanh(slope * safe)
        phi = bound * t / safe
        bend = (bound * slope * (1 - t * t) - phi) / safe.square()
        s = slope * r
        phi0 = bound * slope * (1 - s**2 / 3 + 2 * s**4 / 15)
        bend0 = bound * slope**3 * (-2 / 3 + 8 * s**2 / 15)
        return torch.where(small, phi0, phi), torch.where(small, bend0, bend)

    @staticmethod
    def forward(ctx, mix, mask, bound=2.0, slope=1.0):
        if not (mix.is_complex() and mask.is_complex()):
            raise TypeError("mix and mask must be complex")
        if bound <= 0 or slope <= 0:
            raise ValueError("bound and slope must be positive")
        phi, _ = BoundedRatioMask._shape(mask, bound, slope)
        ctx.save_for_backward(mix, mask)
        ctx.bound, ctx.slope = bound, slope
        return mix * (phi * mask)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        mix, mask = ctx.saved_tensors
        phi, bend = BoundedRatioMask._shape(mask, ctx.bound, ctx.slope)
        grad_mix = grad_mask = None
        if ctx.needs_input_grad[0]:
            grad_mix = (grad * (phi * mask).conj()).sum_to_size(mix.shape)
        if ctx.needs_input_grad[1]:
            pulled = grad * mix.conj()
            radial = (pulled * mask.conj()).real
            grad_mask = (phi * pulled + bend * radial * mask).sum_to_size(mask.shape)
        return grad_mix, grad_mask, None, None


class ScaleInvariantSdr(Function):
    @staticmethod
    def forward(ctx, estimate, reference, zero_mean: bool = True, eps: float = 1e-8):
        if estimate.shape != reference.shape:
            raise ValueError("estimate and reference must have one shape")
        ctx.save_for_backward(estimate, reference)
        ctx.zero_mean, ctx.eps = zero_mean, eps
        if zero_mean:
            estimate = estimate - estimate.mean(-1, keepdim=True)
            reference = reference - reference.mean(-1, keepdim=True)
        gain = (estimate * reference).sum(-1, keepdim=True)
        gain = gain / (reference.square().sum(-1, keepdim=True) + eps)
        target = gain * reference
        noise = estimate - target
        ratio = (target.square().sum(-1) + eps) / (noise.square().sum(-1) + eps)
        return 10 * ratio.log10()

    @staticmethod
    def backward(ctx, grad):
        estimate, reference = ctx.saved_tensors
        eps = ctx.eps
        if ctx.zero_mean:
            estimate = estimate - estimate.mean(-1, keepdim=True)
            reference = reference - reference.mean(-1, keepdim=True)
        cross = (estimate * reference).sum(-1, keepdim=True)
        power = reference.square().sum(-1, keepdim=True) + eps
        gain = cross / power
        target = gain * reference
        noise = estimate - target
        scale = grad.unsqueeze(-1) * 20 / math.log(10)
        by_noise = scale * noise / (noise.square().sum(-1, keepdim=True) + eps)
        by_target = scale * target / (target.square().sum(-1, keepdim=True) + eps) + by_noise
        grad_gain = (by_target * reference).sum(-1, keepdim=True)
        grad_est = grad_gain * reference / power - by_noise
        grad_ref = gain * by_target + grad_gain * (estimate - 2 * gain * reference) / power
        if ctx.zero_mean:
            grad_est = grad_est - grad_est.mean(-1, keepdim=True)
            grad_ref = grad_ref - grad_ref.mean(-1, keepdim=True)
        return grad_est, grad_ref, None, None


class _BandKernel(Function):
    @staticmethod
    def forward(ctx, low, high, time):
        ctx.save_for_backward(low, high, time)
        low, high = low[:, None], high[:, None]
        zero = time == 0
        safe = torch.where(zero, torch.ones_like(time), math.pi * time)
        side = ((2 * math.pi * high * time).sin() - (2 * math.pi * low * time).sin()) / safe
        return torch.where(zero, 2 * (high - low), side)

    @staticmethod
    def backward(ctx, grad):
        low, high, time = ctx.saved_tensors
        by_low = -2 * (2 * math.pi * low[:, None] * time).cos()
        by_high = 2 * (2 * math.pi * high[:, None] * time).cos()
        return (grad * by_low).sum(1), (grad * by_high).sum(1), None


class SincBank(nn.Module):
    """Band-pass filter bank on raw waveforms (B, T) with learned cut-off frequencies.

    Gives (B, filters, T). Cut-offs are kept in units of the sample rate; ``kernel`` is odd.
    ``stretch`` (filters,) optionally scales the band widths.
    """

    def __init__(self, filters, kernel=31, sample_rate=16000.0, lowest=50.0):
        super().__init__()
        if kernel % 2 == 0:
            raise ValueError("kernel must be odd")
        edges = torch.linspace(lowest / sample_rate, 0.45, filters + 1)
        self.low = nn.Parameter(edges[:-1].clone())
        self.band = nn.Parameter(edges.diff())
        half = (kernel - 1) // 2
        self.register_buffer("time", torch.arange(-half, half + 1).to(edges.dtype))
        self.register_buffer("window", torch.hamming_window(kernel, periodic=False))

    def forward(self, wave, stretch=None):
        if wave.dim() != 2:
            raise ValueError("wave must be (batch, samples)")
        band = self.band if stretch is None else self.band * stretch
        taps = _BandKernel.apply(self.low, self.low + band, self.time) * self.window
        return F.conv1d(wave.unsqueeze(1), taps.unsqueeze(1), padding=taps.shape[1] // 2)


class AttentiveStats(nn.Module):
    def __init__(self, channels, hidden=8, eps=1e-6):
        super().__init__()
        self.down = nn.Linear(channels, hidden)
        self.up = nn.Linear(hidden, channels)
        self.eps = eps

    def attention(self, x, lengths):
        score = self.up(torch.tanh(self.down(x.transpose(1, 2)))).transpose(1, 2)
        if lengths is not None:
            frame = torch.arange(x.shape[2], device=x.device)
            score = score.masked_fill((frame >= lengths[:, None]).unsqueeze(1), -math.inf)
        weight = (score - score.amax(2, keepdim=True).detach()).exp()
        return weight / weight.sum(2, keepdim=True)

    def forward(self, x, lengths=None):
        if lengths is not None and int(lengths.min()) < 1:
            raise ValueError("every utterance needs a frame")
        weight = self.attention(x, lengths)
        mean = (weight * x).sum(2, keepdim=True)
        var = (weight * (x - mean).square()).sum(2)
        return torch.cat((mean.squeeze(2), (var + self.eps).sqrt()), 1)


class LagCorrelation(Function):
    @staticmethod
    def forward(ctx, x, lags, center=False, eps=1e-6):
        if x.dim() != 2:
            raise ValueError("x must be (batch, samples)")
        steps = lags.tolist()
        if min(steps) < 0 or max(steps) >= x.shape[1]:
            raise ValueError("lags must be shorter than the frame")
        if center:
            x = x - x.mean(1, keepdim=True)
        out = []
        for lag in steps:
            head, tail = x[:, : x.shape[1] - lag], x[:, lag:]
            norm = head.square().sum(1) * tail.square().sum(1) + eps
            out.append((head * tail).sum(1) / norm.sqrt())
        ctx.save_for_backward(x)
        ctx.steps, ctx.center, ctx.eps = steps, center, eps
        return torch.stack(out, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        grad_x = torch.zeros_like(x)
        size = x.shape[1]
        for column, lag in enumerate(ctx.steps):
            head, tail = x[:, : size - lag], x[:, lag:]
            e_head = head.square().sum(1, keepdim=True)
            e_tail = tail.square().sum(1, keepdim=True)
            inv = (e_head * e_tail + ctx.eps).rsqrt()
            ratio = (head * tail).sum(1, keepdim=True) * inv**3
            g = grad[:, column, None]
            grad_x[:, : size - lag] += g * (inv * tail - ratio * e_tail * head)
            grad_x[:, lag:] += g * (inv * head - ratio * e_head * tail)
        if ctx.center:
            grad_x -= grad_x.mean(1, keepdim=True)
        return grad_x, None, None, None
