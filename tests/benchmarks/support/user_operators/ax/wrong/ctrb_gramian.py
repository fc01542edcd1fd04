import torch


class ControllabilityGramian(torch.autograd.Function):
    """Finite-horizon gramian, sum over k < horizon of A^k B B' A'^k. A (n, n), B (n, m), horizon >= 1."""

    @staticmethod
    def forward(ctx, A, B, horizon):
        ctx.save_for_backward(A, B)
        ctx.horizon = horizon
        power, total = B, B @ B.T
        for _ in range(horizon - 1):
            power = A @ power
            total = total + power @ power.T
        return total

    @staticmethod
    def backward(ctx, grad):
        A, B = ctx.saved_tensors
        powers = [B]
        for _ in range(ctx.horizon - 1):
            powers.append(A @ powers[-1])
        both = grad + grad.T
        g_A = torch.zeros_like(A)
        g_power = both @ powers[-1]
        for k in range(ctx.horizon - 1, 0, -1):
            g_A = g_power @ powers[k - 1].T
            g_power = A.T @ g_power + both @ powers[k - 1]
        return g_A, g_power, None
