import torch


class GShrink(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lam):
        ctx.save_for_backward(x, lam)
        n = x.norm(dim=1)
        on = n > lam
        s = torch.where(on, 1 - lam / torch.where(on, n, 1), 0)
        return s[:, None] * x

    @staticmethod
    def backward(ctx, g):
        x, lam = ctx.saved_tensors
        n = x.norm(dim=1)
        on = n > lam
        n = torch.where(on, n, 1)
        gx = (g * x).sum(1) / n * on
        return (1 - lam / n)[:, None] * g * on[:, None] + (lam * gx / n ** 2)[:, None] * x, -gx
