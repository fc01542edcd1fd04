import torch
from torch.autograd.function import once_differentiable


class EqQP(torch.autograd.Function):
    """argmin_x 1/2 x'Qx + p'x  s.t.  A x = b

    Q (n, n) (its symmetric part is used), p (n,), A (m, n), b (m,) -> x (n,), multipliers nu (m,)
    """

    @staticmethod
    def forward(ctx, Q, p, A, b):
        n, m = A.shape[1], A.shape[0]
        K = Q.new_zeros(n + m, n + m)
        K[:n, :n] = 0.5 * (Q + Q.t())
        K[:n, n:] = A.t()
        K[n:, :n] = A
        sol = torch.linalg.solve(K, torch.cat([-p, b]))
        x, nu = sol[:n].clone(), sol[n:].clone()
        ctx.save_for_backward(K, x, nu)
        return x, nu

    @staticmethod
    @once_differentiable
    def backward(ctx, gx, gnu):
        K, x, nu = ctx.saved_tensors
        n = x.numel()
        d = torch.linalg.solve(K, torch.cat([gx, gnu]))
        dx, dn = d[:n], d[n:]
        gQ = -0.5 * (torch.outer(dx, x) + torch.outer(x, dx))
        gA = -torch.outer(dn, x)
        return gQ, -dx, gA, dn
