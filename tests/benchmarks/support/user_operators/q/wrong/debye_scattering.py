import torch


class DebyeScattering(torch.autograd.Function):
    """Debye formula I(q) = sum_ij f_i f_j sin(q r_ij) / (q r_ij).

    pos (N, 3), f (N,), q (K,) > 0  ->  (K,)
    """

    @staticmethod
    def geometry(pos, q):
        i, j = torch.triu_indices(len(pos), len(pos), 1, device=pos.device)
        d = pos[i] - pos[j]
        r = (d * d).sum(1).sqrt()
        x = q[:, None] * r
        return i, j, d, r, x, torch.sin(x) / x

    @staticmethod
    def forward(ctx, pos, f, q):
        assert all(t.is_floating_point() for t in (pos, f, q)), "real inputs"
        assert f.shape == pos.shape[:1] and q.dim() == 1
        ctx.save_for_backward(pos, f, q)
        i, j, _, _, _, s = DebyeScattering.geometry(pos, q)
        return (f * f).sum() + 2 * s @ (f[i] * f[j])

    @staticmethod
    def backward(ctx, g):
        pos, f, q = ctx.saved_tensors
        i, j, d, r, x, s = DebyeScattering.geometry(pos, q)
        ds = (torch.cos(x) - s) / x
        gs = g @ s
        gf = f * g.sum()
        gf = gf + 2 * torch.zeros_like(f).index_add(0, i, f[j] * gs).index_add(0, j, f[i] * gs)
        pull = 2 * f[i] * f[j] * ((g * q) @ ds) / r
        gpos = torch.zeros_like(pos).index_add(0, i, pull[:, None] * d).index_add(0, j, -pull[:, None] * d)
        gq = 2 * g * (ds @ (f[i] * f[j] * r))
        return gpos, gf, gq
