import math

import torch


def _center(x, keep, n, on):
    x = x * keep
    return (x - x.sum(-1, keepdim=True) / n) * keep if on else x


class _SISDR(torch.autograd.Function):
    @staticmethod
    def forward(ctx, est, ref, lengths, zero_mean, eps):
        keep = torch.arange(est.shape[-1], device=est.device) < lengths[:, None]
        ctx.save_for_backward(est, ref, lengths, keep)
        ctx.opt = zero_mean, eps
        n = lengths[:, None].clamp(min=1)
        e, s = _center(est, keep, n, zero_mean), _center(ref, keep, n, zero_mean)
        p, q, r = (e * s).sum(-1), (s * s).sum(-1) + eps, (e * e).sum(-1)
        target = p * p / q
        return 10 / math.log(10) * (torch.log(target + eps) - torch.log(r - target + eps))

    @staticmethod
    def backward(ctx, grad):
        est, ref, lengths, keep = ctx.saved_tensors
        zero_mean, eps = ctx.opt
        n = lengths[:, None].clamp(min=1)
        e, s = _center(est, keep, n, zero_mean), _center(ref, keep, n, zero_mean)
        p, q, r = (e * s).sum(-1), (s * s).sum(-1) + eps, (e * e).sum(-1)
        target = p * p / q
        grad = 10 / math.log(10) * grad
        g_r = -grad / (r - target + eps)
        g_t = grad / (target + eps) - g_r
        g_p, g_q = g_t * 2 * p / q, -grad * target / q
        g_e = g_p[:, None] * s + 2 * g_r[:, None] * e
        g_s = g_p[:, None] * e + 2 * g_q[:, None] * s
        return _center(g_e, keep, n, zero_mean), _center(g_s, keep, n, zero_mean), None, None, None


def si_sdr(est, ref, lengths=None, zero_mean=True, eps=1e-8):
    """Scale invariant SDR in dB, one per row. est, ref (B, T); lengths (B,) int64 or None."""
    if lengths is None:
        lengths = torch.full((est.shape[0],), est.shape[1], device=est.device)
    return _SISDR.apply(est, ref, lengths, zero_mean, eps)
