import torch
from torch.autograd import Function


class _PCASL(Function):
    @staticmethod
    def forward(ctx, cbf, att, m0, t, tau, t1, t1b, alpha):
        ctx.save_for_backward(cbf, att, m0, t)
        ctx.p = tau, t1, t1b, alpha
        x, unit, _ = _PCASL.curve(att, t, tau, t1, t1b)
        return 2 * alpha * t1 * (m0 * cbf)[:, None] * unit

    @staticmethod
    def curve(att, t, tau, t1, t1b):
        x = t - att[:, None]
        arrived = torch.exp(-att / t1b)[:, None]
        zero = torch.zeros_like(x)
        rise = arrived * (1 - torch.exp(-x / t1))
        fall = arrived * (1 - torch.exp(torch.full_like(x, -tau / t1))) * torch.exp(-(x - tau) / t1)
        unit = torch.where(x <= 0, zero, torch.where(x < tau, rise, fall))
        d_rise = -rise / t1b - arrived * torch.exp(-x / t1) / t1
        d_fall = -fall / t1b
        return x, unit, torch.where(x <= 0, zero, torch.where(x < tau, d_rise, d_fall))

    @staticmethod
    def backward(ctx, g):
        cbf, att, m0, t = ctx.saved_tensors
        tau, t1, t1b, alpha = ctx.p
        x, unit, d_att = _PCASL.curve(att, t, tau, t1, t1b)
        g = 2 * alpha * t1 * g
        flow = (g * unit).sum(1)
        level = (m0 * cbf)[:, None]
        stage = (x > 0) & (x < tau)
        d_t = torch.where(stage, torch.exp(-att / t1b)[:, None] * torch.exp(-x / t1) / t1, -unit / t1)
        return flow * m0, (g * level * d_att).sum(1), flow * cbf, (g * level * d_t).sum(0), None, None, None, None


def pcasl_kinetics(cbf, att, m0, t, tau=1.8, t1=1.3, t1b=1.65, alpha=0.85):
    """Buxton's general kinetic model for PCASL.

    cbf, att, m0 (V,): perfusion [1/s], arrival time [s], equilibrium magnetisation; t (P,) [s] since labelling began
    """
    return _PCASL.apply(cbf, att, m0, t, tau, t1, t1b, alpha)
