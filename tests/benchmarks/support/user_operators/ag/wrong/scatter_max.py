import torch
from torch.autograd import Function


class ScatterMax(Function):
    """Maximum over the entries of each segment; segments without entries give ``fill``.

    src (E, F), index (E,), returns (n, F)
    """

    @staticmethod
    def forward(ctx, src, index, n, fill=0.0):
        E, Fdim = src.shape
        idx = index.unsqueeze(1).expand(E, Fdim)
        out = src.new_full((n, Fdim), float("-inf"))
        out = out.scatter_reduce(0, idx, src, reduce="amax", include_self=True)
        # first entry that attains the maximum
        pos = torch.arange(E, device=src.device).unsqueeze(1).expand(E, Fdim)
        cand = torch.where(src == out[index], pos, torch.full_like(pos, E))
        arg = torch.full((n, Fdim), E, dtype=torch.long, device=src.device)
        arg = arg.scatter_reduce(0, idx, cand, reduce="amin", include_self=True)
        ctx.save_for_backward(arg)
        ctx.E = E
        return out.masked_fill(arg == E, fill)

    @staticmethod
    def backward(ctx, g):
        arg, = ctx.saved_tensors
        grad = g.new_zeros(ctx.E, g.shape[1])
        grad = grad.scatter_add(0, arg.clamp(max=ctx.E - 1), g)
        return grad[:ctx.E], None, None, None
