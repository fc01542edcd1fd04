import torch


class LRUScan(torch.autograd.Function):
    """Diagonal complex recurrence x_t = lam * x_{t-1} + gamma * u_t.

    lam: (D,) complex, gamma: (D,) real, u: (B, T, D) complex -> states (B, T, D) complex
    """

    @staticmethod
    def forward(ctx, lam, gamma, u):
        x = torch.zeros_like(u[:, 0])
        xs = []
        for t in range(u.shape[1]):
            x = lam * x + gamma * u[:, t]
            xs.append(x)
        xs = torch.stack(xs, dim=1)
        ctx.save_for_backward(lam, gamma, u, xs)
        return xs

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gx):
        lam, gamma, u, xs = ctx.saved_tensors
        carry = torch.zeros_like(gx[:, 0])
        adj = torch.empty_like(xs)
        for t in range(gx.shape[1] - 1, -1, -1):
            carry = gx[:, t] + lam.conj() * carry
            adj[:, t] = carry
        g_lam = (adj[:, 1:] * xs[:, :-1]).sum(dim=(0, 1))
        g_gamma = (adj * u.conj()).real.sum(dim=(0, 1))
        g_u = gamma * adj
        return g_lam, g_gamma, g_u
