import torch
from torch.autograd.function import once_differentiable


class ResetScan(torch.autograd.Function):
    """h[t] = decay[t] * h[t-1] + u[t] along dim 1, with h[t-1] taken as zero where reset[t].

    decay, u: (B, T, D); reset: (B, T) bool or None; h0: (B, D) or None.
    Returns (h, last) with h (B, T, D) and last (B, D).
    """

    @staticmethod
    def forward(ctx, decay, u, reset=None, h0=None):
        batch, steps, dim = u.shape
        a = decay if reset is None else decay * (~reset).unsqueeze(-1)
        state = u.new_zeros(batch, dim) if h0 is None else h0
        hs = []
        for t in range(steps):
            state = a[:, t] * state + u[:, t]
            hs.append(state)
        h = torch.stack(hs, 1)
        ctx.save_for_backward(a, reset, h, h0)
        return h, h[:, -1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, gh, g_last):
        a, reset, h, h0 = ctx.saved_tensors
        ga = torch.zeros_like(a)
        gu = torch.empty_like(a)
        carry = g_last
        for t in range(a.size(1) - 1, -1, -1):
            carry += gh[:, t]
            gu[:, t] = carry
            if t > 0:
                ga[:, t] = carry * h[:, t - 1]
            elif h0 is not None:
                ga[:, t] = carry * h0
            carry *= a[:, t]
        if reset is not None:
            ga = ga * (~reset).unsqueeze(-1)
        return ga, gu, None, (carry if h0 is not None else None)
