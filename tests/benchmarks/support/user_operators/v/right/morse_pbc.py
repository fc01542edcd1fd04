import torch


class MorsePBC(torch.autograd.Function):
    """Morse energy sum_pairs D (1 - exp(-a (r - r0)))^2 in an orthorhombic box.

    pos (N, 3), pairs (P, 2), box (3,) edge lengths; minimum image convention.
    """

    @staticmethod
    def forward(ctx, pos, pairs, box, D, a, r0):
        d = pos[pairs[:, 0]] - pos[pairs[:, 1]]
        d = d - box * torch.round(d / box)
        r = d.norm(dim=1)
        ctx.save_for_backward(pos, pairs, box)
        ctx.consts = D, a, r0
        return (D * (1 - torch.exp(-a * (r - r0))) ** 2).sum()

    @staticmethod
    def backward(ctx, grad):
        pos, pairs, box = ctx.saved_tensors
        D, a, r0 = ctx.consts
        i, j = pairs.unbind(1)
        d = pos[i] - pos[j]
        shift = torch.round((d / box).detach())
        d = d - box * shift
        r = d.norm(dim=1, keepdim=True)
        e = torch.exp(-a * (r - r0))
        f = grad * 2 * D * a * (1 - e) * e * d / r
        out = torch.zeros_like(pos).index_add(0, i, f).index_add(0, j, -f)
        return out, None, -(f * shift).sum(0), None, None, None
