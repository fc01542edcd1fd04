import math

import torch


class ThresholdedSNR(torch.autograd.Function):
    # est, ref: (B, T). returns negative SNR in dB per utterance, saturating at max_snr
    @staticmethod
    def forward(ctx, est, ref, max_snr=30.0, eps=1e-8):
        ctx.save_for_backward(est, ref)
        ctx.tau, ctx.eps = 10 ** (-max_snr / 10), eps
        p = ref.square().sum(-1)
        e = (est - ref).square().sum(-1)
        return 10 * torch.log10(e + ctx.tau * p + eps) - 10 * torch.log10(p + eps)

    @staticmethod
    def backward(ctx, g):
        est, ref = ctx.saved_tensors
        tau, eps = ctx.tau, ctx.eps
        p = ref.square().sum(-1, keepdim=True)
        d = est - ref
        e = d.square().sum(-1, keepdim=True)
        k = 20 / math.log(10) * g[..., None]
        den = e + tau * p + eps
        g_est = k * d / den
        g_ref = k * (tau * ref - d) / den - k * ref / (p + eps)
        return g_est, g_ref, None, None
