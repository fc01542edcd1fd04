"""Equality-constrained quadratic program as a layer (the easy half of OptNet).

    min_x 1/2 x'Px + c'x   s.t.  Ax = b

P is symmetrised. Batched over the first axis of c and b; P and A are shared.
"""
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def kkt_matrix(P, A):
    m = A.shape[0]
    top = torch.cat([0.5 * (P + P.t()), A.t()], 1)
    bottom = torch.cat([A, A.new_zeros(m, m)], 1)
    return torch.cat([top, bottom], 0)


class QPEq(Function):
    @staticmethod
    def forward(ctx, P, c, A, b):
        n = P.shape[0]
        sol = torch.linalg.solve(kkt_matrix(P, A), torch.cat([-c, b], 1).t()).t()
        x, nu = sol[:, :n], sol[:, n:]
        ctx.save_for_backward(P, A, x, nu)
        return x.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        P, A, x, nu = ctx.saved_tensors
        n, m = P.shape[0], A.shape[0]
        rhs = torch.cat([-g, g.new_zeros(g.shape[0], m)], 1)
        d = torch.linalg.solve(kkt_matrix(P, A), rhs.t()).t()
        dx, dnu = d[:, :n], d[:, n:]
        gP = 0.5 * (dx.t() @ x + x.t() @ dx)
        gA = nu.t() @ dx + dnu.t() @ x
        return gP, dx, gA, -dnu
