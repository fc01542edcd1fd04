import torch
from torch import nn


class _Rollout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x0, u, y, A, B, C, L, owner):
        xs = [x0]
        for t in range(u.shape[0]):
            x = xs[-1]
            xs.append(A @ x + B @ u[t] + L @ (y[t] - C @ x))
        out = torch.stack(xs)
        owner.states = out.detach()
        ctx.owner = owner
        ctx.save_for_backward(u, y, A, B, C, L)
        return out

    @staticmethod
    def backward(ctx, grad):
        u, y, A, B, C, L = ctx.saved_tensors
        xs = ctx.owner.states
        lam = grad[-1]
        lams = [lam]
        closed = A - L @ C
        for t in range(u.shape[0] - 1, -1, -1):
            lam = grad[t] + closed.T @ lam
            lams.append(lam)
        lams = torch.stack(lams[::-1])
        ahead, now = lams[1:], xs[:-1]
        innov = y - now @ C.T
        g_innov = ahead @ L
        return lams[0], ahead @ B, g_innov, ahead.T @ now, ahead.T @ u, -g_innov.T @ now, ahead.T @ innov, None


class LuenbergerObserver(nn.Module):
    """Discrete observer ``x+ = A x + B u + L (y - C x)``.

    :param int n: states
    :param int m: inputs
    :param int p: outputs

    ``forward(x0, u, y)`` takes (n,), (T, m), (T, p) with T >= 1 and returns the estimates (T + 1, n);
    those of the last call are kept in ``states`` for plots.
    """

    def __init__(self, n, m, p):
        super().__init__()
        self.A = nn.Parameter(torch.eye(n))
        self.B = nn.Parameter(torch.zeros(n, m))
        self.C = nn.Parameter(torch.zeros(p, n))
        self.L = nn.Parameter(torch.zeros(n, p))
        self.states = None

    def forward(self, x0, u, y):
        return _Rollout.apply(x0, u, y, self.A, self.B, self.C, self.L, self)
