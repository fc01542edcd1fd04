import torch
from torch.autograd import Function


def _parts(T, n):
    i = torch.arange(n, device=T.device, dtype=T.dtype)
    a = i * (i - 1) * (i - 2) * (i - 3)
    e = i[:, None] + i[None]          # i + j
    live = (i[:, None] >= 4) & (i[None] >= 4)
    aa = torch.where(live, a[:, None] * a[None], torch.zeros_like(e))
    return aa, torch.where(live, e - 7, torch.ones_like(e))


class MinSnapCost(Function):
    @staticmethod
    def forward(ctx, coeffs, T):
        """Integral of squared snap of polynomial segments.

        Args:
            coeffs: (S, D, P) segments, dimensions, coefficients with the lowest power first
            T: (S,) durations
        Returns:
            (S,)
        """
        ctx.save_for_backward(coeffs, T)
        aa, p = _parts(T, coeffs.shape[-1])
        Q = aa * T[:, None, None] ** p / p
        return torch.einsum("sdi,sij,sdj->s", coeffs, Q, coeffs)

    @staticmethod
    def backward(ctx, g):
        coeffs, T = ctx.saved_tensors
        aa, p = _parts(T, coeffs.shape[-1])
        Q = aa * T[:, None, None] ** p / p
        dQ = aa * T[:, None, None] ** (p - 1)
        gT = g * torch.einsum("sdi,sij,sdj->s", coeffs, dQ, coeffs)
        g2 = 2 * g
        gc = g2[:, None, None] * torch.einsum("sij,sdj->sdi", Q, coeffs)
        return gc, gT
