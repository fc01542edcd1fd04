import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class HawkesLogLik(Function):
    """Log likelihood of sequences under a Hawkes process with exponential kernel.

    Intensity mu + branching * beta * sum exp(-beta (t - t_i)).
    times (B, T) increasing event times (data, no gradient), lengths (B,), horizon > last time;
    mu, branching, beta: positive scalars (0-dim tensors). Returns (B,).
    """

    @staticmethod
    def forward(ctx, mu, branching, beta, times, lengths, horizon):
        B, T = times.shape
        live = torch.arange(T, device=times.device) < lengths[:, None]
        A = [times.new_zeros(B)]
        D = [times.new_zeros(B)]  # dA / dbeta
        for i in range(1, T):
            gap = times[:, i] - times[:, i - 1]
            e = torch.where(live[:, i], torch.exp(-beta * gap), 0)
            D.append(e * (D[-1] - gap * (1 + A[-1])))
            A.append(e * (1 + A[-1]))
        A, D = torch.stack(A, 1), torch.stack(D, 1)
        lam = mu + branching * beta * A
        tail = torch.where(live, torch.exp(-beta * (horizon - times)), 1)
        ctx.save_for_backward(branching, beta, times, live, A, D, lam, tail)
        ctx.horizon = horizon
        return (lam.log() * live).sum(1) - mu * horizon - branching * (1 - tail).sum(1)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        branching, beta, times, live, A, D, lam, tail = ctx.saved_tensors
        inv = live / lam
        g_mu = (g * (inv.sum(1) - ctx.horizon)).sum()
        g_branching = (g * ((inv * beta * A).sum(1) - (1 - tail).sum(1))).sum()
        dlam = branching * (A + beta * D)
        comp = branching * ((ctx.horizon - times) * tail * live).sum(1)
        g_beta = (g * ((inv * dlam).sum(1) - comp)).sum()
        return g_mu, g_branching, g_beta, None, None, None
