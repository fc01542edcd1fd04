import torch


def _idx(n, m):
    # row i, column j -> position of i - j in (-(m-1) .. n-1)
    return torch.arange(n)[:, None] - torch.arange(m)[None] + m - 1


class ToeplitzMV(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t, x):
        m = x.shape[-1]
        n = t.shape[-1] - m + 1
        ctx.save_for_backward(t, x)
        return torch.einsum("ij,...j->...i", t[_idx(n, m)], x)

    @staticmethod
    def backward(ctx, g):
        t, x = ctx.saved_tensors
        m = x.shape[-1]
        n = t.shape[-1] - m + 1
        ix = _idx(n, m)
        gx = torch.einsum("ij,...i->...j", t[ix], g)
        outer = torch.einsum("...i,...j->ij", g, x)
        gt = torch.zeros_like(t).index_add(0, ix.reshape(-1), outer.reshape(-1))
        return gt, gx
