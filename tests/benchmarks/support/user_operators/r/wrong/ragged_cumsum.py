import torch


class RaggedCumsum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, vals, offs, exclusive):
        out = torch.empty_like(vals)
        for a, b in zip(offs[:-1].tolist(), offs[1:].tolist()):
            c = vals[a:b].cumsum(0)
            out[a:b] = c - vals[a:b] if exclusive else c
        ctx.offs, ctx.exclusive = offs, exclusive
        return out

    @staticmethod
    def backward(ctx, g):
        parts = []
        for a, b in zip(ctx.offs[:-1].tolist(), ctx.offs[1:].tolist()):
            c = g[a:b].flip(0).cumsum(0).flip(0)
            parts.append(c)
        return torch.cat(parts), None, None


def ragged_cumsum(vals, offs, exclusive=False):
    # offs: (S + 1,), offs[0] = 0, offs[-1] = len(vals)
    return RaggedCumsum.apply(vals, offs, exclusive)
