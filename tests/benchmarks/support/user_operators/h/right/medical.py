"""Imaging operators: acquisition models, registration, losses and filters."""

import enum

import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class CoilFourier(Function):
    """Multi-coil Cartesian MRI: mask * FFT(sens * image).

    image (H, W) real or complex, sens (C, H, W) complex, mask (H, W) bool.
    """

    @staticmethod
    def forward(ctx, image, sens, mask):
        ctx.save_for_backward(image, sens, mask)
        return torch.fft.fft2(sens * image, norm="ortho") * mask

    @staticmethod
    def backward(ctx, grad_k):
        image, sens, mask = ctx.saved_tensors
        coil = torch.fft.ifft2(grad_k * mask, norm="ortho")
        grad_image = grad_sens = None
        if ctx.needs_input_grad[0]:
            grad_image = (sens.conj() * coil).sum(0)
            if not image.is_complex():
                grad_image = grad_image.real
        if ctx.needs_input_grad[1]:
            grad_sens = image.conj() * coil
        return grad_image, grad_sens, None


def _detector_bins(h, w, angles, n_det):
    ys = torch.arange(h, dtype=angles.dtype, device=angles.device) - (h - 1) / 2
    xs = torch.arange(w, dtype=angles.dtype, device=angles.device) - (w - 1) / 2
    yy, xx = torch.meshgrid(ys, xs, indexing="ij")
    t = torch.outer(angles.cos(), xx.flatten()) + torch.outer(
        angles.sin(), yy.flatten()
    )
    t = t + (n_det - 1) / 2
    lo = t.floor()
    frac = t - lo
    lo = lo.long()
    w_lo = (1 - frac) * ((lo >= 0) & (lo < n_det))
    w_hi = frac * ((lo >= -1) & (lo < n_det - 1))
    return lo.clamp(0, n_det - 1), (lo + 1).clamp(0, n_det - 1), w_lo, w_hi


class ParallelProjector(Function):
    """Pixel-driven parallel-beam projection of an (H, W) slice."""

    @staticmethod
    def forward(ctx, image, angles, n_det):
        if angles.requires_grad:
            raise NotImplementedError("the angles are fixed")
        h, w = image.shape
        lo, hi, w_lo, w_hi = _detector_bins(h, w, angles, n_det)
        pix = image.reshape(1, -1)
        sino = image.new_zeros(angles.numel(), n_det)
        sino.scatter_add_(1, lo, pix * w_lo).scatter_add_(1, hi, pix * w_hi)
        ctx.save_for_backward(angles)
        ctx.shape, ctx.n_det = (h, w), n_det
        return sino

    @staticmethod
    def backward(ctx, grad_sino):
        (angles,) = ctx.saved_tensors
        h, w = ctx.shape
        lo, hi, w_lo, w_hi = _detector_bins(h, w, angles, ctx.n_det)
        back = grad_sino.gather(1, lo) * w_lo + grad_sino.gather(1, hi) * w_hi
        return back.sum(0).reshape(h, w), None, None


def _axis_weights(coord, size):
    c = coord.clamp(0, size - 1)
    base = c.detach().floor().clamp(max=size - 2)
    return base.long(), c - base, (coord > 0) & (coord < size - 1)


class WarpImage(Function):
    """Bilinear warp of (B, C, H, W) by a displacement (B, 2, H, W) in pixels (dy, dx).

    Positions outside of the image take the value at its border; H, W >= 2.
    """

    @staticmethod
    def _sample(image, flow):
        b, c, h, w = image.shape
        rows = torch.arange(h, dtype=flow.dtype, device=flow.device).view(1, h, 1)
        cols = torch.arange(w, dtype=flow.dtype, device=flow.device).view(1, 1, w)
        y0, wy, in_y = _axis_weights(rows + flow[:, 0], h)
        x0, wx, in_x = _axis_weights(cols + flow[:, 1], w)
        first = (y0 * w + x0).reshape(b, 1, -1).expand(b, c, -1)
        idx = [first, first + 1, first + w, first + w + 1]
        return idx, wy.reshape(b, 1, -1), wx.reshape(b, 1, -1), in_y, in_x

    @staticmethod
    def forward(ctx, image, flow):
        idx, wy, wx, _, _ = WarpImage._sample(image, flow)
        a, b, c, d = (image.flatten(2).gather(2, i) for i in idx)
        ctx.save_for_backward(image, flow)
        out = (1 - wy) * ((1 - wx) * a + wx * b) + wy * ((1 - wx) * c + wx * d)
        return out.reshape(image.shape)

    @staticmethod
    def backward(ctx, grad):
        image, flow = ctx.saved_tensors
        idx, wy, wx, in_y, in_x = WarpImage._sample(image, flow)
        a, b, c, d = (image.flatten(2).gather(2, i) for i in idx)
        g = grad.flatten(2)
        parts = [(1 - wy) * (1 - wx), (1 - wy) * wx, wy * (1 - wx), wy * wx]
        gi = g.new_zeros(g.shape)
        for i, part in zip(idx, parts):
            gi = gi.scatter_add(2, i, g * part)
        gy = (g * ((1 - wx) * (c - a) + wx * (d - b))).sum(1).reshape(in_y.shape)
        gx = (g * ((1 - wy) * (b - a) + wy * (d - c))).sum(1).reshape(in_x.shape)
        gy = gy * in_y
        gx = gx * in_x
        return gi.reshape(image.shape), torch.stack([gy, gx], dim=1)


class Reduction(enum.Enum):
    NONE = "none"
    MEAN = "mean"
    SUM = "sum"


class SoftDiceLoss(Function):
    """1 - Dice for every class of every scan; probs, target: (B, C, voxels)."""

    @staticmethod
    def forward(ctx, probs, target, smooth=1.0, reduction=Reduction.MEAN):
        if probs.shape != target.shape or target.requires_grad:
            raise ValueError("target must be a fixed label map shaped like probs")
        inter = (probs * target).sum(-1)
        union = probs.sum(-1) + target.sum(-1)
        loss = 1.0 - (2.0 * inter + smooth) / (union + smooth)
        ctx.save_for_backward(probs, target)
        ctx.smooth, ctx.reduction = smooth, Reduction(reduction)
        if ctx.reduction is Reduction.NONE:
            return loss
        return loss.mean() if ctx.reduction is Reduction.MEAN else loss.sum()

    @staticmethod
    def backward(ctx, grad_loss):
        probs, target = ctx.saved_tensors
        b, c = probs.shape[:2]
        g = grad_loss.expand(b, c)
        if ctx.reduction is Reduction.MEAN:
            g = g / (b * c)
        num = 2.0 * (probs * target).sum(-1) + ctx.smooth
        den = probs.sum(-1) + target.sum(-1) + ctx.smooth
        slope = (num / den**2).unsqueeze(-1) - 2.0 * target / den.unsqueeze(-1)
        return g.unsqueeze(-1) * slope, None, None, None


class TverskyIndex(Function):
    # alpha weighs false positives, beta false negatives; target is never trained
    @staticmethod
    def forward(ctx, p, t, alpha=0.5, beta=0.5, eps=1e-6):
        tp = (p * t).flatten(1).sum(1)
        fp = (p * (1 - t)).flatten(1).sum(1)
        fn = ((1 - p) * t).flatten(1).sum(1)
        ctx.save_for_backward(p, t)
        ctx.hyper = alpha, beta, eps
        return (tp + eps) / (tp + alpha * fp + beta * fn + eps)

    @staticmethod
    def backward(ctx, g):
        p, t = ctx.saved_tensors
        alpha, beta, eps = ctx.hyper
        lead = (-1,) + (1,) * (p.dim() - 1)
        tp = (p * t).flatten(1).sum(1)
        fp = (p * (1 - t)).flatten(1).sum(1)
        fn = ((1 - p) * t).flatten(1).sum(1)
        den = tp + alpha * fp + beta * fn + eps
        ratio = (tp + eps) / den
        dden = t + alpha * (1 - t) - beta * t
        grad_p = (g / den).view(lead) * (t - ratio.view(lead) * dden)
        return grad_p, None, None, None, None


def _circ_blur(x, psf, adjoint=False):
    k = torch.fft.rfft(psf, n=x.size(-1))
    k = k.conj() if adjoint else k
    return torch.fft.irfft(torch.fft.rfft(x) * k, n=x.size(-1))


class RichardsonLucyStep(Function):
    """One multiplicative deconvolution update along the last axis (periodic)."""

    @staticmethod
    def forward(ctx, estimate, observed, psf, eps=1e-8):
        if psf.requires_grad:
            raise ValueError("psf is calibrated, not trained")
        ratio = observed / (_circ_blur(estimate, psf) + eps)
        ctx.save_for_backward(estimate, observed, psf)
        ctx.eps = eps
        return estimate * _circ_blur(ratio, psf, adjoint=True)

    @staticmethod
    def backward(ctx, grad_out):
        estimate, observed, psf = ctx.saved_tensors
        model = _circ_blur(estimate, psf) + ctx.eps
        correction = _circ_blur(observed / model, psf, adjoint=True)
        spread = _circ_blur(estimate * grad_out, psf)
        back = _circ_blur(spread * observed / model**2, psf, adjoint=True)
        return grad_out * correction - back, spread / model, None, None


class CrossCorrelation(Function):
    """Zero-normalised cross-correlation of two batches of images, per image."""

    @staticmethod
    def forward(ctx, fixed, moving):
        a = fixed - fixed.mean(dim=(-2, -1), keepdim=True)
        b = moving - moving.mean(dim=(-2, -1), keepdim=True)
        ctx.save_for_backward(fixed, moving)
        return (a * b).sum((-2, -1)) / (a.norm(dim=(-2, -1)) * b.norm(dim=(-2, -1)))

    @staticmethod
    def backward(ctx, grad_cc):
        fixed, moving = ctx.saved_tensors
        axes = (-2, -1)
        a = fixed - fixed.mean(dim=axes, keepdim=True)
        b = moving - moving.mean(dim=axes, keepdim=True)
        na = a.norm(dim=axes, keepdim=True)
        nb = b.norm(dim=axes, keepdim=True)
        a, b = a / na, b / nb
        cc = (a * b).sum(axes, keepdim=True)
        g = grad_cc[..., None, None]
        return g * (b - cc * a) / na, g * (a - cc * b) / nb


class RootSumSquares(Function):
    """Coil combination sqrt(sum |x|^2) along dim (real or complex)."""

    @staticmethod
    def forward(ctx, coils, dim=0, keepdim=False):
        out = coils.abs().square().sum(dim, keepdim=True).sqrt()
        out = out if keepdim else out.squeeze(dim)
        ctx.save_for_backward(coils, out)
        ctx.dim, ctx.keepdim = dim, keepdim
        return out

    @staticmethod
    def backward(ctx, grad):
        coils, out = ctx.saved_tensors
        scaled = grad / out.clamp(min=torch.finfo(out.dtype).tiny)
        if not ctx.keepdim:
            scaled = scaled.unsqueeze(ctx.dim)
        return scaled * coils, None, None


class BiquadFilter(Function):
    """Second-order IIR section over the last axis of (B, T).

    y[t] = b0 x[t] + b1 x[t-1] + b2 x[t-2] - a1 y[t-1] - a2 y[t-2]
    """

    @staticmethod
    def forward(ctx, x, b, a):
        (b0, b1, b2), (a1, a2) = b.tolist(), a.tolist()
        xp = torch.nn.functional.pad(x, (2, 0))
        y = torch.zeros_like(xp)
        for t in range(2, y.size(1)):
            y[:, t] = b0 * xp[:, t] + b1 * xp[:, t - 1] + b2 * xp[:, t - 2]
            y[:, t] -= a1 * y[:, t - 1] + a2 * y[:, t - 2]
        out = y[:, 2:].contiguous()
        ctx.save_for_backward(x, b, a, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, b, a, y = ctx.saved_tensors
        n = x.size(1)
        u = grad.new_zeros(x.size(0), n + 2)
        for t in range(n - 1, -1, -1):
            u[:, t] = grad[:, t] - a[0] * u[:, t + 1] - a[1] * u[:, t + 2]
        grad_x = b[0] * u[:, :n] + b[1] * u[:, 1 : n + 1] + b[2] * u[:, 2:]
        grad_b = torch.stack([(u[:, k:n] * x[:, : n - k]).sum() for k in range(3)])
        grad_a = torch.stack([-(u[:, k:n] * y[:, : n - k]).sum() for k in (1, 2)])
        return grad_x, grad_b, grad_a


class _BlendSamples(Function):
    @staticmethod
    def forward(ctx, k, k0, mask, lam):
        ctx.save_for_backward(k, k0, mask, lam)
        return torch.where(mask, (k + lam * k0) / (1 + lam), k)

    @staticmethod
    def backward(ctx, g):
        k, k0, mask, lam = ctx.saved_tensors
        keep = 1 / (1 + lam)
        grad_k = torch.where(mask, g * keep, g)
        grad_k0 = torch.where(mask, g * lam * keep, torch.zeros_like(g))
        pull = (g.conj() * (k0 - k)).real * keep**2
        grad_lam = torch.where(mask, pull, torch.zeros_like(pull)).sum()
        return grad_k, grad_k0, None, grad_lam


class KSpaceConsistency(nn.Module):
    """Soft data consistency with a learned weight of the measured samples."""

    def __init__(self, lam=1.0):
        super().__init__()
        self.lam = nn.Parameter(torch.tensor(float(lam)))

    def forward(self, k, k0, mask):
        if k.shape != k0.shape:
            raise ValueError("prediction and measurement differ in shape")
        return _BlendSamples.apply(k, k0, mask.expand(k.shape), self.lam)
