import torch


def _nearest(a, b, la, lb):
    d = (a.unsqueeze(2) - b.unsqueeze(1)).pow(2).sum(-1)
    va = torch.arange(a.size(1), device=a.device) < la[:, None]
    vb = torch.arange(b.size(1), device=b.device) < lb[:, None]
    ab = d.masked_fill(~vb.unsqueeze(1), float("inf")).argmin(2)
    ba = d.masked_fill(~va.unsqueeze(2), float("inf")).argmin(1)
    return ab, ba, va.to(a.dtype), vb.to(b.dtype)


def _pick(x, idx):
    return x.gather(1, idx.unsqueeze(-1).expand(-1, -1, x.size(-1)))


class Chamfer(torch.autograd.Function):
    """Squared Chamfer distance of padded clouds a (B, N, 3), b (B, M, 3) -> (B,).

    len_a and len_b (B,) are at least 1.
    """

    @staticmethod
    def forward(ctx, a, b, len_a, len_b):
        ab, ba, va, vb = _nearest(a, b, len_a, len_b)
        to_b = ((a - _pick(b, ab)).pow(2).sum(-1) * va).sum(1) / len_a
        to_a = ((b - _pick(a, ba)).pow(2).sum(-1) * vb).sum(1) / len_b
        ctx.save_for_backward(a, b, len_a, len_b)
        return to_b + to_a

    @staticmethod
    def backward(ctx, g):
        a, b, len_a, len_b = ctx.saved_tensors
        ab, ba, va, vb = _nearest(a, b, len_a, len_b)
        ea = 2 * (a - _pick(b, ab)) * (va * (g / len_a)[:, None]).unsqueeze(-1)
        eb = 2 * (b - _pick(a, ba)) * (vb * (g / len_a)[:, None]).unsqueeze(-1)
        ga = ea.scatter_add(1, ba.unsqueeze(-1).expand_as(eb), -eb)
        gb = eb.scatter_add(1, ab.unsqueeze(-1).expand_as(ea), -ea)
        return ga, gb, None, None
