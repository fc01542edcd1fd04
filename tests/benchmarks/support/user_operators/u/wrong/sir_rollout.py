import torch
from torch.autograd.function import once_differentiable


class SIR(torch.autograd.Function):
    """Explicit Euler for the SIR model, fractions s0, i0 (R,) of several regions, scalars beta, gamma.

    Returns (S, I), each (steps + 1, R).
    """

    @staticmethod
    def forward(ctx, s0, i0, beta, gamma, steps, dt=1.0):
        S, I = [s0], [i0]
        for _ in range(steps):
            new = beta * S[-1] * I[-1] * dt
            S.append(S[-1] - new)
            I.append(I[-1] + new - gamma * I[-1] * dt)
        S, I = torch.stack(S), torch.stack(I)
        ctx.save_for_backward(S, I, beta, gamma)
        ctx.dt = dt
        return S, I

    @staticmethod
    @once_differentiable
    def backward(ctx, gS, gI):
        S, I, beta, gamma = ctx.saved_tensors
        dt = ctx.dt
        ls, li = gS[-1], gI[-1]
        g_beta, g_gamma = torch.zeros_like(beta), torch.zeros_like(gamma)
        for t in range(len(S) - 2, -1, -1):
            d = (li - ls) * dt
            g_beta += (d * S[t] * I[t]).sum()
            g_gamma -= (li * I[t]).sum() * dt
            ls = ls + d * beta * I[t]
            li = li * (1 - gamma * dt) + (li - ls) * dt * beta * S[t]
            ls, li = ls + gS[t], li + gI[t]
        return ls, li, g_beta, g_gamma, None, None
