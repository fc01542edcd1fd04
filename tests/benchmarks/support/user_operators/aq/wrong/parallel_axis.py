import torch


class _ParallelAxis(torch.autograd.Function):
    @staticmethod
    def forward(ctx, I, m, d):
        ctx.save_for_backward(m, d)
        eye = torch.eye(3, dtype=I.dtype, device=I.device)
        dd = d[:, :, None] * d[:, None, :]
        return I + m[:, None, None] * ((d * d).sum(1)[:, None, None] * eye - dd)

    @staticmethod
    def backward(ctx, G):
        m, d = ctx.saved_tensors
        tr = G.diagonal(dim1=1, dim2=2).sum(1)
        Gd = torch.einsum("bij,bj->bi", G, d)
        Gtd = torch.einsum("bji,bj->bi", G, d)
        gd = m[:, None] * (2 * tr[:, None] * d - Gd - Gtd)
        return G, None, gd


def shift_inertia(I, m, d):
    """links' inertia (B,3,3) about COM -> about a point at offset d (B,3); m (B,) masses"""
    return _ParallelAxis.apply(I, m, d)
