import torch


def prep(p, T):
    ok = (p >= 0) & (p <= T - 1)
    q = p.clamp(0, T - 1)
    i = q.detach().floor().long().clamp(max=T - 2)
    return ok, i[:, None], (q - i)[:, None]


class Warp1d(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p, mode):  # x B C T, p B S, mode 0 zero 1 clamp
        ctx.save_for_backward(x, p)
        ctx.mode = mode
        ok, i, w = prep(p, x.size(2))
        i = i.expand(-1, x.size(1), -1)
        a, b = x.gather(2, i), x.gather(2, i + 1)
        y = a + (b - a) * w
        return y * ok[:, None] if mode == 0 else y

    @staticmethod
    def backward(ctx, g):
        x, p = ctx.saved_tensors
        ok, i, w = prep(p, x.size(2))
        i = i.expand(-1, x.size(1), -1)
        if ctx.mode == 0:
            g = g * ok[:, None]
        gx = torch.zeros(x.shape, dtype=x.dtype, device=x.device)
        gx = gx.scatter_add(2, i, g * (1 - w)).scatter_add(2, i + 1, g * w)
        gp = (g * (x.gather(2, i + 1) - x.gather(2, i))).sum(1)
        return gx, gp, None
