import torch


class FinnisSinclair(torch.autograd.Function):
    """Embedding energy -A sum_i sqrt(rho_i), rho_i = sum_j (r_ij - d)^2 for r_ij < d.

    pos (N, 3), A scalar, d cutoff (float).
    """

    @staticmethod
    def forward(ctx, pos, A, d):
        diff = pos[:, None] - pos[None, :]
        r = diff.norm(dim=-1)
        near = (r < d) & ~torch.eye(len(pos), dtype=torch.bool, device=pos.device)
        rho = ((r - d) ** 2 * near).sum(1)
        ctx.save_for_backward(pos, A)
        ctx.d = d
        return -A * rho.sqrt().sum()

    @staticmethod
    def backward(ctx, g):
        pos, A = ctx.saved_tensors
        d = ctx.d
        diff = pos[:, None] - pos[None, :]
        eye = torch.eye(len(pos), dtype=pos.dtype, device=pos.device)
        r = ((diff**2).sum(-1) + eye).sqrt()
        near = (r < d) & (eye == 0)
        rho = ((r - d) ** 2 * near).sum(1)
        bound = rho > 0
        root = rho.sqrt()
        g_rho = -A / (2 * root)
        g_r = 2 * (r - d) * near * (g_rho[:, None] + g_rho[None, :])
        g_pos = (g_r[..., None] * diff / r[..., None]).sum(1)
        return g * g_pos, -g * (root * bound).sum(), None
