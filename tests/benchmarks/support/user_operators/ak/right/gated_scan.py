import torch


class GatedScan(torch.autograd.Function):

    @staticmethod
    def forward(ctx, a, x, h0=None, reset=None):
        h = torch.zeros_like(x[:, 0]) if h0 is None else h0
        ys = []
        for i in range(x.shape[1]):
            if reset is not None:
                h = h * ~reset[:, i, None]
            h = a[:, i] * h + x[:, i]
            ys.append(h)
        y = torch.stack(ys, dim=1)
        ctx.save_for_backward(a, y, h0, reset)
        return y, y[:, -1].clone()

    @staticmethod
    def backward(ctx, gy, g_last):
        a, y, h0, reset = ctx.saved_tensors
        lam, ga, gx = g_last, [], []
        for i in range(a.shape[1] - 1, -1, -1):
            lam = lam + gy[:, i]
            gx.append(lam)
            if i:
                prev = y[:, i - 1]
            else:
                prev = torch.zeros_like(lam) if h0 is None else h0
            keep = 1 if reset is None else ~reset[:, i, None]
            ga.append(lam * prev * keep)
            lam = lam * a[:, i] * keep
        ga, gx = torch.stack(ga[::-1], 1), torch.stack(gx[::-1], 1)
        return ga, gx, lam if h0 is not None else None, None
