import torch


class GroupedLinear(torch.autograd.Function):
    """Rows of x, sorted by expert, times their expert's matrix.

    x (T, D), weight (E, D, F), counts: how many rows each expert takes, a list of E ints.
    """

    @staticmethod
    def forward(ctx, x, weight, counts):
        if sum(counts) != x.shape[0] or len(counts) != weight.shape[0]:
            raise ValueError("counts do not fit")
        ctx.save_for_backward(x, weight)
        ctx.counts = counts
        return torch.cat([xe @ w for xe, w in zip(x.split(counts), weight)])

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        gs = g.split(ctx.counts)
        gx = torch.cat([ge @ w.mH for ge, w in zip(gs, weight)])
        gw = torch.stack([xe.mH @ ge for xe, ge in zip(x.split(ctx.counts), gs)])
        return gx, gw, None
