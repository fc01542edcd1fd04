import torch


class EqualityQP(torch.autograd.Function):
    @staticmethod
    def _kkt(Q, A):
        m = A.shape[-2]
        zeros = Q.new_zeros(*A.shape[:-2], m, m)
        top = torch.cat([Q, A.transpose(-1, -2)], dim=-1)
        return torch.cat([top, torch.cat([A, zeros], dim=-1)], dim=-2)

    @staticmethod
    def forward(ctx, Q, p, A, b):
        n = Q.shape[-1]
        sol = torch.linalg.solve(EqualityQP._kkt(Q, A), torch.cat([-p, b], dim=-1))
        x, nu = sol[..., :n].clone(), sol[..., n:].clone()
        ctx.save_for_backward(Q, A, x, nu)
        return x, nu

    @staticmethod
    def backward(ctx, gx, gnu):
        Q, A, x, nu = ctx.saved_tensors
        n = Q.shape[-1]
        d = torch.linalg.solve(EqualityQP._kkt(Q, A).transpose(-1, -2), torch.cat([gx, gnu], dim=-1))
        dx, dnu = d[..., :n], d[..., n:]
        gQ = -dx.unsqueeze(-1) * x.unsqueeze(-2)
        gA = -(nu.unsqueeze(-1) * dx.unsqueeze(-2) + dnu.unsqueeze(-1) * x.unsqueeze(-2))
        return gQ, -dx, gA, dnu
