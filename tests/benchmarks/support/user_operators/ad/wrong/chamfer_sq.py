import torch


class ChamferDistance(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x, y):
        d = (x.unsqueeze(1) - y.unsqueeze(0)).pow(2).sum(-1)
        dx, ix = d.min(dim=1)
        dy, iy = d.min(dim=0)
        ctx.save_for_backward(x, y, ix, iy)
        ctx.mark_non_differentiable(ix, iy)
        return dx.mean(), dy.mean(), ix, iy

    @staticmethod
    def backward(ctx, g1, g2, _ix, _iy):
        x, y, ix, iy = ctx.saved_tensors
        a = 2 * g1 / x.shape[0] * (x - y[ix])
        b = 2 * g2 / y.shape[0] * (y - x[iy])
        gx = a.index_add(0, iy, b, alpha=-1)
        gy = b.clone()
        gy[ix] -= a
        return gx, gy
