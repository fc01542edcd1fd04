import math

import torch


class SISDR(torch.autograd.Function):
    """Scale-invariant SDR in dB of each row; est, ref: (B, T).

    zero_mean removes the mean of both signals first.
    """

    @staticmethod
    def forward(ctx, est, ref, zero_mean=True, eps=1e-8):
        ctx.save_for_backward(est, ref)
        ctx.zero_mean, ctx.eps = zero_mean, eps
        e, r = SISDR._center(est, ref, zero_mean)
        num, den = SISDR._powers(e, r, eps)
        return 10 * torch.log10((num + eps) / (den + eps))

    @staticmethod
    def _center(e, r, zero_mean):
        if zero_mean:
            return e - e.mean(-1, keepdim=True), r - r.mean(-1, keepdim=True)
        return e, r

    @staticmethod
    def _powers(e, r, eps):
        er, rr, ee = (e * r).sum(-1), (r * r).sum(-1), (e * e).sum(-1)
        num = er ** 2 / (rr + eps)
        return num, ee - num

    @staticmethod
    def backward(ctx, g):
        est, ref = ctx.saved_tensors
        eps = ctx.eps
        e, r = SISDR._center(est, ref, ctx.zero_mean)
        num, den = SISDR._powers(e, r, eps)
        k = 10 / math.log(10)
        g_num = (g * k * (1 / (num + eps) + 1 / (den + eps))).unsqueeze(-1)
        g_ee = (-g * k / (den + eps)).unsqueeze(-1)
        rr = (r * r).sum(-1, keepdim=True) + eps
        c = (e * r).sum(-1, keepdim=True) / rr
        g_est = g_ref = None
        if ctx.needs_input_grad[0]:
            g_est = g_num * 2 * c * r + g_ee * 2 * e
            if ctx.zero_mean:
                g_est = g_est - g_est.mean(-1, keepdim=True)
        if ctx.needs_input_grad[1] and not ctx.needs_input_grad[0]:
            g_ref = g_num * (2 * c * e - 2 * c ** 2 * r)
            if ctx.zero_mean:
                g_ref = g_ref - g_ref.mean(-1, keepdim=True)
        return g_est, g_ref, None, None
