import torch


class PatlakModel(torch.autograd.Function):
    """Tissue curves of irreversible uptake.

    cp (T,) plasma curve, times (T,) increasing (constants), ki (N,), vb (N,) -> (N, T)
    """

    @staticmethod
    def _integral(cp, times):
        area = 0.5 * (cp[1:] + cp[:-1]) * times.diff()
        return torch.cat([cp.new_zeros(1), area.cumsum(0)])

    @staticmethod
    def forward(ctx, cp, times, ki, vb):
        ctx.save_for_backward(cp, times, ki, vb)
        return ki[:, None] * PatlakModel._integral(cp, times) + vb[:, None] * cp

    @staticmethod
    def backward(ctx, grad):
        cp, times, ki, vb = ctx.saved_tensors
        g_ki = grad @ PatlakModel._integral(cp, times)
        g_vb = grad @ cp
        later = (ki @ grad)[1:].flip(0).cumsum(0).flip(0)
        area = 0.5 * later * times.diff()
        zero = cp.new_zeros(1)
        g_cp = vb @ grad + 2 * torch.cat([zero, area])
        return g_cp, None, g_ki, g_vb
