import torch
from torch.autograd.function import once_differentiable


class TsodyksMarkram(torch.autograd.Function):
    """Short-term plasticity driven by a rate, forward Euler.

    rate: (B, T); U, tau_f, tau_d: scalars (tensors). Returns u*x*r, (B, T).
    u starts at U, x at 1.
    """

    @staticmethod
    def forward(ctx, rate, U, tau_f, tau_d, dt):
        B, T = rate.shape
        u = U.expand(B).clone()
        x = torch.ones_like(u)
        us, xs = [], []
        for t in range(T):
            us.append(u)
            xs.append(x)
            r = rate[:, t]
            u, x = (u + dt * ((U - u) / tau_f + U * (1 - u) * r),
                    x + dt * ((1 - x) / tau_d - u * x * r))
        us, xs = torch.stack(us, 1), torch.stack(xs, 1)
        ctx.save_for_backward(rate, U, tau_f, tau_d, us, xs)
        ctx.dt = dt
        return us * xs * rate

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        rate, U, tau_f, tau_d, us, xs = ctx.saved_tensors
        dt = ctx.dt
        lu = torch.zeros_like(us[:, 0])
        lx = torch.zeros_like(lu)
        gr = torch.empty_like(rate)
        gU, gf, gd = torch.zeros_like(U), torch.zeros_like(tau_f), torch.zeros_like(tau_d)
        for t in reversed(range(rate.shape[1])):
            r, u, x, gt = rate[:, t], us[:, t], xs[:, t], g[:, t]
            gr[:, t] = gt * u * x + dt * (lu * U * (1 - u) - lx * u * x)
            gU = gU + dt * (lu * (1 / tau_f + (1 - u) * r)).sum()
            gf = gf - dt * (lu * (U - u)).sum() / tau_f ** 2
            gd = gd - dt * (lx * (1 - x)).sum() / tau_d ** 2
            lu, lx = (lu * (1 - dt / tau_f - dt * U * r) - lx * dt * x * r + gt * x * r,
                      lx * (1 - dt / tau_d - dt * u * r) + gt * u * r)
        return gr, gU, gf, gd, None
