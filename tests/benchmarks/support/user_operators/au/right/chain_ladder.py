import torch


class ChainLadder(torch.autograd.Function):
    """Ultimate claims by chain ladder.

    tri (N, N) cumulative claims, accident year by development year; only the upper-left
    triangle i + j <= N - 1 is observed, the rest is ignored. Returns the ultimates (N,).
    """

    @staticmethod
    def _parts(tri):
        n = tri.size(0)
        i = torch.arange(n, device=tri.device)
        seen = i[:, None] + i[None, :-1] < n - 1
        zero = tri.new_zeros(())
        num = torch.where(seen, tri[:, 1:], zero).sum(0)
        den = torch.where(seen, tri[:, :-1], zero).sum(0)
        open_ = i[:, None] + i[None, :-1] >= n - 1
        latest = tri[i, n - 1 - i]
        return i, seen, open_, num, den, latest

    @staticmethod
    def forward(ctx, tri):
        ctx.save_for_backward(tri)
        i, seen, open_, num, den, latest = ChainLadder._parts(tri)
        f = num / den
        return latest * torch.where(open_, f, torch.ones_like(f)).prod(1)

    @staticmethod
    def backward(ctx, g):
        (tri,) = ctx.saved_tensors
        n = tri.size(0)
        i, seen, open_, num, den, latest = ChainLadder._parts(tri)
        f = num / den
        growth = torch.where(open_, f, torch.ones_like(f)).prod(1)
        gf = (open_ * (g * latest * growth)[:, None]).sum(0) / f
        out = torch.zeros_like(tri)
        out[:, 1:] = out[:, 1:] + seen * (gf / den)
        out[:, :-1] = out[:, :-1] - seen * (gf * f / den)
        out = out.index_put((i, n - 1 - i), g * growth, accumulate=True)
        return out
