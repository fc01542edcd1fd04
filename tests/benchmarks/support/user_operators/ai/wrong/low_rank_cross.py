import torch


class LowRankCross(torch.autograd.Function):
    # y = x0 * (x V U^T + b) + x
    @staticmethod
    def forward(ctx, x0, x, v, u, b=None):
        ctx.save_for_backward(x0, x, v, u, b)
        t = x @ v @ u.t()
        if b is not None:
            t = t + b
        return x0 * t + x

    @staticmethod
    def backward(ctx, gy):
        x0, x, v, u, b = ctx.saved_tensors
        h = x @ v
        t = h @ u.t()
        if b is not None:
            t = t + b
        gt = gy * x0
        gh = gt @ u
        gx0 = gy * t
        gx = gh @ v.t()
        flat = lambda a: a.reshape(-1, a.shape[-1])
        gv = flat(x).t() @ flat(gh)
        gu = flat(gt).t() @ flat(h)
        gb = flat(gt).sum(0) if b is not None else None
        return gx0, gx, gv, gu, gb
