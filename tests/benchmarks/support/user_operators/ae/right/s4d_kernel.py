import torch
from torch.autograd.function import once_differentiable


class S4DKernel(torch.autograd.Function):
    """Convolution kernel of a diagonal state space with zero-order hold.

    log_dt: (H,) real; A, C: (H, N) complex  ->  K: (H, L) real
        K[l] = 2 Re sum_n C_n (exp(dt A_n) - 1) / A_n exp(dt A_n l)
    """

    @staticmethod
    def forward(ctx, log_dt, A, C, L):
        dt = log_dt.exp()
        dtA = A * dt[:, None]
        steps = torch.arange(L, device=A.device, dtype=log_dt.dtype)
        powers = torch.exp(dtA[..., None] * steps)
        Bd = (torch.exp(dtA) - 1) / A
        ctx.save_for_backward(dt, A, C, steps)
        return 2 * torch.einsum("hn,hnl->hl", C * Bd, powers).real

    @staticmethod
    @once_differentiable
    def backward(ctx, gK):
        dt, A, C, steps = ctx.saved_tensors
        dtA = A * dt[:, None]
        e = torch.exp(dtA)
        Bd = (e - 1) / A
        powers = torch.exp(dtA[..., None] * steps)
        g = gK[:, None, :]
        s0 = (g * powers).sum(-1)
        s1 = (g * powers * steps).sum(-1)
        dC = Bd * s0
        d_dtA = C * (Bd * s1 + e / A * s0)
        dA = d_dtA * dt[:, None] - C * Bd / A * s0
        d_log_dt = 2 * (d_dtA * dtA).sum(-1).real
        return d_log_dt, 2 * dA.conj(), 2 * dC.conj(), None
