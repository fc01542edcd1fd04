import math
import torch


def _center(x):
    return x - x.mean(-1, keepdim=True)


class _SiSdr(torch.autograd.Function):
    """Negative SI-SDR in dB of each row, (B, T), (B, T) -> (B,)."""

    @staticmethod
    def stats(est, ref, zero_mean):
        if zero_mean:
            est, ref = _center(est), _center(ref)
        return est, ref, (est * ref).sum(-1), est.square().sum(-1), ref.square().sum(-1)

    @staticmethod
    def forward(ctx, est, ref, zero_mean, eps):
        _, _, er, ee, rr = _SiSdr.stats(est, ref, zero_mean)
        ctx.save_for_backward(est, ref)
        ctx.zero_mean, ctx.eps = zero_mean, eps
        target = er * er / (rr + eps)
        return -10 * torch.log10((target + eps) / (ee - target + eps))

    @staticmethod
    def backward(ctx, g):
        est, ref = ctx.saved_tensors
        eps = ctx.eps
        e, r, er, ee, rr = _SiSdr.stats(est, ref, ctx.zero_mean)
        target = er * er / (rr + eps)
        noise = ee - target + eps
        k = -10 / math.log(10) * g
        d_target = k * (1 / (target + eps) + 1 / noise)
        d_ee = -k / noise
        d_er = 2 * d_target * er / (rr + eps)
        d_rr = -d_target * target / (rr + eps)
        ge = d_er[:, None] * r + 2 * d_ee[:, None] * e
        gr = d_er[:, None] * e + 2 * d_rr[:, None] * r
        if ctx.zero_mean:
            ge, gr = _center(ge), _center(gr)
        return ge, gr, None, None


def si_sdr_loss(est, ref, zero_mean=True, eps=1e-8, reduce=True):
    if est.shape != ref.shape:
        raise ValueError(f"{tuple(est.shape)} against {tuple(ref.shape)}")
    lead = est.shape[:-1]
    out = _SiSdr.apply(est.reshape(-1, est.shape[-1]), ref.reshape(-1, ref.shape[-1]), zero_mean, eps)
    return out.mean() if reduce else out.reshape(lead)
