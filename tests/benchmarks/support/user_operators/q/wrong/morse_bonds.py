import torch


class MorseBonds(torch.autograd.Function):
    """Sum of D (1 - exp(-a (r - r0)))^2 over bonds (M, 2); D, a, r0 are (M,) or scalars."""

    @staticmethod
    def forward(ctx, pos, D, a, r0, bonds):
        for t in (pos, D, a, r0):
            if not torch.is_floating_point(t):
                raise TypeError("floating point expected")
        if pos.dim() != 2 or bonds.dim() != 2 or bonds.shape[1] != 2:
            raise ValueError("pos (N, 3), bonds (M, 2)")
        ctx.save_for_backward(pos, D, a, r0, bonds)
        r = (pos[bonds[:, 0]] - pos[bonds[:, 1]]).norm(dim=1)
        return (D * (1 - torch.exp(-a * (r - r0))) ** 2).sum()

    @staticmethod
    def backward(ctx, g):
        pos, D, a, r0, bonds = ctx.saved_tensors
        v = pos[bonds[:, 0]] - pos[bonds[:, 1]]
        r = v.norm(dim=1)
        e = torch.exp(-a * (r - r0))
        gD = g * (1 - e) ** 2
        ge = 2 * g * D * (1 - e) * e
        ga = ge * (r - r0)
        gr = ge * a
        f = gr[:, None] * v
        g_pos = torch.zeros_like(pos).index_add(0, bonds[:, 0], f).index_add(0, bonds[:, 1], -f)

        def fit(t, like):
            return t if like.dim() and like.shape[0] == t.shape[0] else t.sum().reshape(like.shape)

        return g_pos, fit(gD, D), fit(ga, a), fit(-gr, r0), None
