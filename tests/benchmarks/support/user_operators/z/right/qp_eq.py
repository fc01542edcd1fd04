import torch
from torch.autograd.function import once_differentiable


class EqualityQP(torch.autograd.Function):
    """argmin 1/2 x'Px + q'x subject to Ax = b.

    P (n, n) is symmetrised; q (n,), A (m, n), b (m,). Returns x and the multipliers.
    """

    @staticmethod
    def forward(ctx, P, q, A, b):
        n, m = q.shape[0], b.shape[0]
        top = torch.cat([0.5 * (P + P.mT), A.mT], 1)
        kkt = torch.cat([top, torch.cat([A, A.new_zeros(m, m)], 1)], 0)
        sol = torch.linalg.solve(kkt, torch.cat([-q, b]))
        x, nu = sol[:n].clone(), sol[n:].clone()
        ctx.save_for_backward(kkt, x, nu)
        return x, nu

    @staticmethod
    @once_differentiable
    def backward(ctx, gx, gnu):
        kkt, x, nu = ctx.saved_tensors
        n = x.shape[0]
        s = torch.linalg.solve(kkt, torch.cat([gx, gnu]))
        u, v = s[:n], s[n:]
        gP = -torch.outer(u, x)
        gP = 0.5 * (gP + gP.mT)
        gA = -torch.outer(v, x) - torch.outer(nu, u)
        return gP, -u, gA, v
