import torch
from torch.autograd import Function


class PaczynskiCurve(Function):
    """Point-lens microlensing light curves in several bands.

    Parameters
    ----------
    t : (n,)
    t0, u0, t_e : 0-dim
        Time of the peak, impact parameter (not 0), Einstein time (> 0).
    source, blend : (bands,)
        Source and blend flux.

    Returns
    -------
    flux : (bands, n)
    """

    @staticmethod
    def forward(ctx, t, t0, u0, t_e, source, blend):
        ctx.save_for_backward(t, t0, u0, t_e, source)
        w = u0**2 + ((t - t0) / t_e) ** 2
        mag = (w + 2) / torch.sqrt(w * (w + 4))
        return source[:, None] * mag + blend[:, None]

    @staticmethod
    def backward(ctx, grad):
        t, t0, u0, t_e, source = ctx.saved_tensors
        tau = (t - t0) / t_e
        w = u0**2 + tau**2
        mag = (w + 2) / torch.sqrt(w * (w + 4))
        g_source = (grad * mag).sum(1)
        g_blend = grad.sum(1)
        g_mag = (grad * source[:, None]).sum(0)
        g_w = -4 * g_mag / (w * (w + 4)) ** 1.5
        g_t = 2 * g_w * tau / t_e
        return g_t, -g_t.sum(), 2 * g_w.sum() * u0, -(g_t * tau).sum(), g_source, g_blend
