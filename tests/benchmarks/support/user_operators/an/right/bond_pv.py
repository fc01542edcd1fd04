import torch


def _discount(y, t, freq):
    if freq == 0:
        return torch.exp(-y[:, None] * t)
    return (1 + y[:, None] / freq) ** (-freq * t)


class _PV(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y, cash, t, freq):
        ctx.save_for_backward(y, cash, t)
        ctx.freq = freq
        return _discount(y, t, freq) @ cash

    @staticmethod
    def backward(ctx, g):
        y, cash, t = ctx.saved_tensors
        f = ctx.freq
        df = _discount(y, t, f)
        duration = df * t
        if f:
            duration = duration / (1 + y[:, None] / f)
        g_y = -g * (duration @ cash)
        rate = y if f == 0 else f * torch.log1p(y / f)
        g_t = -((g * rate)[:, None] * df * cash).sum(0)
        return g_y, g @ df, g_t, None


def bond_pv(yields, cash, times, compounding="annual"):
    """Present value of cash (N,) at times (N,) for each yield (B,)."""
    freq = {"continuous": 0, "annual": 1, "semi": 2, "quarterly": 4}[compounding]
    return _PV.apply(yields, cash, times, freq)
