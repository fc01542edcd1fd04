import torch


class GroupNeighbours(torch.autograd.Function):
    """Gather the neighbours of every centre and make them relative to it.

    feats: (N, C)
    nbr:   (M, K) int64, short neighbourhoods are filled up with -1
    centre:(M,) int64
    Returns (M, K, C), zero where nbr is -1.
    """

    @staticmethod
    def forward(ctx, feats, nbr, centre, relative=True):
        empty = nbr < 0
        out = feats[nbr.clamp(min=0)]
        if relative:
            out = out - feats[centre][:, None]
        ctx.save_for_backward(nbr, centre, empty)
        ctx.relative, ctx.shape = relative, feats.shape
        return out.masked_fill(empty[..., None], 0)

    @staticmethod
    def backward(ctx, grad):
        nbr, centre, empty = ctx.saved_tensors
        C = ctx.shape[1]
        gf = grad.new_zeros(ctx.shape)
        gf = gf.index_add(0, nbr.clamp(min=0).reshape(-1), grad.reshape(-1, C))
        if ctx.relative:
            gf = gf.index_add(0, centre, -grad.sum(1))
        return gf, None, None, None
