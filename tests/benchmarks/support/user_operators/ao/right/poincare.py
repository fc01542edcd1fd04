import torch


class PoincareDistance(torch.autograd.Function):
    # Nickel & Kiela 2017, eq. 4
    @staticmethod
    def forward(ctx, u, v):
        ctx.save_for_backward(u, v)
        a, b, d2, z = PoincareDistance._terms(u, v)
        return torch.acosh(z).squeeze(-1)

    @staticmethod
    def _terms(u, v):
        a = 1 - (u * u).sum(-1, keepdim=True)
        b = 1 - (v * v).sum(-1, keepdim=True)
        d2 = ((u - v) ** 2).sum(-1, keepdim=True)
        return a, b, d2, 1 + 2 * d2 / (a * b)

    @staticmethod
    def backward(ctx, g):
        u, v = ctx.saved_tensors
        a, b, d2, z = PoincareDistance._terms(u, v)
        k = 4 * g.unsqueeze(-1) / (z * z - 1).sqrt()
        gu = k * ((u - v) / (a * b) + d2 * u / (a * a * b))
        gv = k * ((v - u) / (a * b) + d2 * v / (a * b * b))
        return gu, gv
