import torch
from torch.autograd.function import once_differentiable


class LIFLayer(torch.autograd.Function):
    """Leaky integrate-and-fire over time with reset by subtraction.

        v[t] = beta * v[t-1] + I[t] - theta * s[t-1],   s[t] = v[t] > theta

    current: (T, B, N), beta: (N,). Returns the spikes and the voltages, both (T, B, N).
    The spike nonlinearity uses a surrogate derivative (fast sigmoid of slope `slope`) in the backward
    pass, so the gradients of the spikes are deliberately not the true ones.
    """

    @staticmethod
    def forward(ctx, current, beta, theta=1.0, slope=5.0, detach_reset=False):
        v = torch.zeros_like(current[0])
        s = torch.zeros_like(v)
        vs, ss = [], []
        for I in current:
            v = beta * v + I - theta * s
            s = (v > theta).to(v.dtype)
            vs.append(v)
            ss.append(s)
        vs = torch.stack(vs)
        ctx.save_for_backward(beta, vs)
        ctx.conf = theta, slope, detach_reset
        return torch.stack(ss), vs.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, g_s, g_v):
        beta, vs = ctx.saved_tensors
        theta, slope, detach_reset = ctx.conf
        T = vs.shape[0]
        g_cur = torch.empty_like(vs)
        g_beta = torch.zeros_like(beta)
        lam = torch.zeros_like(vs[0])
        for t in range(T - 1, -1, -1):
            gs = g_s[t] - theta * lam
            sg = 1 / (1 + slope * (vs[t] - theta).abs()) ** 2
            lam = g_v[t] + gs * sg + beta * lam
            g_cur[t] = lam
            if t > 0:
                g_beta += (lam * vs[t - 1]).sum(0)
        return g_cur, g_beta, None, None, None
