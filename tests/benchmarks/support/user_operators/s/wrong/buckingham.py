import torch


class Buckingham(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pos, i, j, A, B, C):
        ctx.save_for_backward(pos, i, j, A, B, C)
        r = (pos[i] - pos[j]).norm(dim=-1)
        return (A * torch.exp(-B * r) - C / r**6).sum()

    @staticmethod
    def backward(ctx, g):
        pos, i, j, A, B, C = ctx.saved_tensors
        rij = pos[i] - pos[j]
        r = rij.norm(dim=-1)
        e = torch.exp(-B * r)
        dr = -A * B * e - 6 * C / r**7
        f = g * (dr / r)[:, None] * rij
        gpos = torch.zeros_like(pos).index_add(0, i, f).index_add(0, j, -f)
        return gpos, None, None, g * e.sum(), -g * (A * r * e).sum(), -g * (r**-6).sum()
