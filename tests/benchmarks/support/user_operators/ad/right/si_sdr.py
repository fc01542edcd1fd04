import math
import torch

_DB = 10 / math.log(10)


class SISDR(torch.autograd.Function):
    """Scale-invariant SDR in dB, (batch, time) -> (batch,)"""

    @staticmethod
    def forward(ctx, est, ref, zero_mean=True, eps=1e-8):
        if zero_mean:
            est = est - est.mean(-1, keepdim=True)
            ref = ref - ref.mean(-1, keepdim=True)
        dot = (est * ref).sum(-1)
        rr = (ref * ref).sum(-1)
        ee = (est * est).sum(-1)
        scale = dot / (rr + eps)
        tgt = scale ** 2 * rr
        res = ee - 2 * scale * dot + tgt
        ctx.save_for_backward(est, ref, dot, rr, scale, tgt, res)
        ctx.eps = eps
        return _DB * (torch.log(tgt + eps) - torch.log(res + eps))

    @staticmethod
    def backward(ctx, g):
        est, ref, dot, rr, scale, tgt, res = ctx.saved_tensors
        eps = ctx.eps
        g_tgt = _DB * g / (tgt + eps)
        g_res = -_DB * g / (res + eps)
        g_tgt = g_tgt + g_res
        g_scale = 2 * g_tgt * scale * rr - 2 * g_res * dot
        g_dot = g_scale / (rr + eps) - 2 * g_res * scale
        g_rr = g_tgt * scale ** 2 - g_scale * scale / (rr + eps)
        g_est = g_dot[:, None] * ref + 2 * g_res[:, None] * est
        g_ref = None
        if ctx.needs_input_grad[1]:
            g_ref = g_dot[:, None] * est + 2 * g_rr[:, None] * ref
        return g_est, g_ref, None, None
