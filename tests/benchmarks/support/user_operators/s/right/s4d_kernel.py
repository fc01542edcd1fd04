import torch


class S4DKernel(torch.autograd.Function):
    """K[h, l] = 2 Re sum_n C[h, n] exp(dt[h] A[h, n] l), A and C complex, dt = exp(log_dt) real."""

    @staticmethod
    def forward(ctx, log_dt, A, C, L):
        ctx.save_for_backward(log_dt, A, C)
        ctx.L = L
        steps = torch.arange(L, dtype=log_dt.dtype, device=A.device)
        dtA = log_dt.exp()[:, None] * A
        E = torch.exp(dtA[..., None] * steps)
        return 2 * (C[..., None] * E).sum(1).real

    @staticmethod
    def backward(ctx, grad):
        log_dt, A, C = ctx.saved_tensors
        steps = torch.arange(ctx.L, dtype=log_dt.dtype, device=A.device)
        dt = log_dt.exp()[:, None]
        E = torch.exp((dt * A)[..., None] * steps)
        g = 2 * grad[:, None, :]
        gC = (g * E.conj()).sum(-1)
        gdtA = (g * steps * (C[..., None] * E).conj()).sum(-1)
        gdt = (gdtA * A.conj()).real * dt
        return gdt.sum(-1), gdtA * dt, gC, None
