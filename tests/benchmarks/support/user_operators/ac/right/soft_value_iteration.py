import torch
from torch.autograd.function import once_differentiable


class SoftValueIteration(torch.autograd.Function):
    """n sweeps of the entropy-regularised Bellman backup on a tabular MDP.

        Q_k = R + gamma * P V_k,      V_{k+1} = tau * logsumexp(Q_k / tau, actions)

    R: S x A, P: S x A x S', V0: S.  Returns V_n and the Q table of the last sweep.
    """

    @staticmethod
    def forward(ctx, R, P, V0, gamma, tau, n):
        V = V0
        tables, vs = [], []
        for _ in range(n):
            vs.append(V)
            Q = R + gamma * P.matmul(V)
            tables.append(Q)
            V = tau * torch.logsumexp(Q / tau, dim=1)
        ctx.save_for_backward(P, *vs, *tables)
        ctx.n, ctx.gamma, ctx.tau = n, gamma, tau
        return V, Q

    @staticmethod
    @once_differentiable
    def backward(ctx, gV, gQ_last):
        P, rest = ctx.saved_tensors[0], ctx.saved_tensors[1:]
        vs, tables = rest[:ctx.n], rest[ctx.n:]
        gR = torch.zeros_like(tables[0])
        gP = torch.zeros_like(P)
        for k in range(ctx.n - 1, -1, -1):
            pi = torch.softmax(tables[k] / ctx.tau, dim=1)
            gQ = gV[:, None] * pi
            if k == ctx.n - 1:
                gQ = gQ + gQ_last
            gR += gQ
            gP += ctx.gamma * gQ[:, :, None] * vs[k]
            gV = ctx.gamma * torch.einsum('sa,sat->t', gQ, P)
        return gR, gP, gV, None, None, None
