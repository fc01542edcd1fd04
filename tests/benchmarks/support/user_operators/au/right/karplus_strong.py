import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class _Pluck(Function):
    @staticmethod
    def forward(ctx, burst, damp, blend, period):
        y = torch.zeros_like(burst)
        for n in range(burst.size(1)):
            y[:, n] = burst[:, n]
            if n >= period:
                y[:, n] += damp * (1 - blend) * y[:, n - period]
            if n > period:
                y[:, n] += damp * blend * y[:, n - period - 1]
        ctx.save_for_backward(damp, blend, y)
        ctx.period = period
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        damp, blend, y = ctx.saved_tensors
        N, T = ctx.period, y.size(1)
        lam = torch.zeros_like(g)
        for n in range(T - 1, -1, -1):
            lam[:, n] = g[:, n]
            if n + N < T:
                lam[:, n] += damp * (1 - blend) * lam[:, n + N]
            if n + N + 1 < T:
                lam[:, n] += damp * blend * lam[:, n + N + 1]
        near = (lam[:, N:] * y[:, :T - N]).sum(1) if T > N else torch.zeros_like(damp)
        far = (lam[:, N + 1:] * y[:, :T - N - 1]).sum(1) if T > N + 1 else torch.zeros_like(damp)
        return lam, (1 - blend) * near + blend * far, damp * (far - near), None


def karplus_strong(burst, damp, blend, period):
    """Plucked string. burst (B, T) excitation, damp (B,) loop gain, blend (B,) of the two-tap loop filter, period in samples"""
    return _Pluck.apply(burst, damp, blend, period)
