import math

import torch


class LSD(torch.autograd.Function):
    @staticmethod
    def forward(ctx, est, ref, lengths, eps):
        ctx.save_for_backward(est, ref, lengths)
        ctx.eps = eps
        d = 10 * torch.log10((est + eps) / (ref + eps))
        lsd = torch.sqrt((d ** 2).mean(-1) + eps)
        keep = torch.arange(est.size(1), device=est.device) < lengths[:, None]
        return (lsd * keep).sum() / keep.sum()

    @staticmethod
    def backward(ctx, g):
        est, ref, lengths = ctx.saved_tensors
        eps = ctx.eps
        d = 10 * torch.log10((est + eps) / (ref + eps))
        lsd = torch.sqrt((d ** 2).mean(-1, keepdim=True) + eps)
        keep = torch.arange(est.size(1), device=est.device) < lengths[:, None]
        gd = g * keep[..., None] * d / (lsd * est.size(-1) * keep.sum())
        gd = gd * (10 / math.log(10))
        return gd / (est + eps), -gd / (ref + eps), None, None


def log_spectral_distance(est, ref, lengths=None, eps=1e-5):
    """Mean log-spectral distance in dB.

    est, ref (B, T, F) power spectra, lengths (B,) frames of each utterance.
    """
    if lengths is None:
        lengths = torch.full((est.size(0),), est.size(1), device=est.device)
    return LSD.apply(est, ref, lengths, eps)
