import torch


class YukawaEnergy(torch.autograd.Function):
    """Screened Coulomb energy of charges q (N,) at pos (N, 3), inverse length kappa (scalar tensor)."""

    @staticmethod
    def forward(ctx, pos, q, kappa):
        i, j = torch.triu_indices(len(q), len(q), 1, device=pos.device)
        r = (pos[i] - pos[j]).norm(dim=1)
        ctx.save_for_backward(pos, q, kappa, i, j)
        return (q[i] * q[j] * torch.exp(-kappa * r) / r).sum()

    @staticmethod
    def backward(ctx, g):
        pos, q, kappa, i, j = ctx.saved_tensors
        d = pos[i] - pos[j]
        r = d.norm(dim=1)
        e = torch.exp(-kappa * r) / r
        qq = q[i] * q[j]
        pull = (-g * qq * e * (kappa + 1 / r) / r)[:, None] * d
        g_pos = torch.zeros_like(pos).index_add(0, i, pull).index_add(0, j, -pull)
        g_q = torch.zeros_like(q).index_add(0, i, g * e * q[j]).index_add(0, j, g * e * q[i])
        return g_pos, g_q, -g * (qq * e * r).sum()
