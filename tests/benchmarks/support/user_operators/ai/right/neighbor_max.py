import torch


class NeighborMax(torch.autograd.Function):
    """Maximum over listed neighbours minus the centre's feature (EdgeConv pooling).

    feats: (N, C)
    nbr: (N, K) rows, -1 pads; a point without neighbours gives zero.
    """

    @staticmethod
    def forward(ctx, feats, nbr):
        pad = (nbr < 0).unsqueeze(-1)
        cand = feats[nbr.clamp(min=0)].masked_fill(pad, float("-inf"))
        best, arg = cand.max(1)
        empty = pad.all(1)
        winner = nbr.clamp(min=0).gather(1, arg)
        ctx.winner = winner
        ctx.save_for_backward(empty)
        return torch.where(empty, torch.zeros_like(best), best - feats)

    @staticmethod
    def backward(ctx, grad):
        (empty,) = ctx.saved_tensors
        grad = grad.masked_fill(empty, 0)
        return (torch.zeros_like(grad).scatter_add(0, ctx.winner, grad) - grad), None
