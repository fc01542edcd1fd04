import torch
from torch.autograd.function import once_differentiable


def _kkt(Q, A):
    m = A.shape[0]
    top = torch.cat([Q, A.t()], 1)
    bottom = torch.cat([A, A.new_zeros(m, m)], 1)
    return torch.cat([top, bottom], 0)


class EqualityQP(torch.autograd.Function):
    @staticmethod
    def forward(ctx, Q, p, A, b):
        n = p.numel()
        sol = torch.linalg.solve(_kkt(Q, A), torch.cat([-p, b]))
        x, nu = sol[:n], sol[n:]
        ctx.save_for_backward(Q, A, x, nu)
        return x, nu

    @staticmethod
    @once_differentiable
    def backward(ctx, gx, gnu):
        Q, A, x, nu = ctx.saved_tensors
        n = x.numel()
        adj = torch.linalg.solve(_kkt(Q, A).t(), torch.cat([gx, gnu]))
        u, w = adj[:n], adj[n:]
        gQ = -torch.outer(u, x)
        gA = -torch.outer(w, x) - torch.outer(nu, u)
        return gQ, -u, gA, w


def solve_eq_qp(Q, p, A, b, return_dual=False):
    """Stationary point of 1/2 x'Qx + p'x subject to Ax = b, from its KKT system (Q as it is given)."""
    x, nu = EqualityQP.apply(Q, p, A, b)
    return (x, nu) if return_dual else x
