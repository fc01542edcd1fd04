import torch


class ChamferDistance(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        d = (x[:, None] - y[None]).pow(2).sum(-1)
        dx, ix = d.min(1)
        dy, iy = d.min(0)
        ctx.save_for_backward(x, y, ix, iy)
        return dx.mean() + dy.mean()

    @staticmethod
    def backward(ctx, grad):
        x, y, ix, iy = ctx.saved_tensors
        a = 2 * grad * (x - y[ix]) / len(x)
        b = 2 * grad * (y - x[iy]) / len(x)
        return a.index_add(0, iy, -b), b.index_add(0, ix, -a)
