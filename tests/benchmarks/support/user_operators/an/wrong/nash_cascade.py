import torch


def _unit(k, n, steps, dt):
    t = (torch.arange(steps, dtype=k.dtype, device=k.device) + 0.5) * dt
    return t, dt / k * torch.exp((n - 1) * torch.log(t / k) - t / k - torch.lgamma(n))


def _toeplitz(v):
    T = v.shape[0]
    i = torch.arange(T, device=v.device)
    lag = i[:, None] - i
    return torch.where(lag >= 0, v[lag.clamp(min=0)], torch.zeros((), dtype=v.dtype, device=v.device))


class _Nash(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rain, k, n, dt):
        ctx.save_for_backward(rain, k, n)
        ctx.dt = dt
        return _toeplitz(_unit(k, n, len(rain), dt)[1]) @ rain

    @staticmethod
    def backward(ctx, g):
        rain, k, n = ctx.saved_tensors
        t, u = _unit(k, n, len(rain), ctx.dt)
        g_rain = g_k = g_n = None
        if ctx.needs_input_grad[0]:
            g_rain = _toeplitz(u).t() @ g
        if ctx.needs_input_grad[0] and ctx.needs_input_grad[1]:
            gu = (_toeplitz(rain).t() @ g) * u
            g_k = (gu * (t / k - n)).sum() / k
            g_n = (gu * (torch.log(t / k) - torch.digamma(n))).sum()
        return g_rain, g_k, g_n, None


def runoff(rain, k, n, dt=1.0):
    """Nash cascade: rain (T,), storage constant k () and number of reservoirs n (), real -> discharge (T,)"""
    return _Nash.apply(rain, k, n, dt)
