import torch


class IRT3PL(torch.autograd.Function):
    @staticmethod
    def forward(ctx, theta, a, b, c, y):
        """theta (P,), a b c (I,), y (P, I) in {0, 1} or -1 for missing -> log-likelihood"""
        s = torch.sigmoid(a * (theta[:, None] - b))
        p = c + (1 - c) * s
        ll = torch.where(y == 1, p.log(), torch.log1p(-p))
        ctx.save_for_backward(theta, a, b, c, y)
        return ll[y >= 0].sum()

    @staticmethod
    def backward(ctx, g):
        theta, a, b, c, y = ctx.saved_tensors
        d = theta[:, None] - b
        s = torch.sigmoid(a * d)
        p = c + (1 - c) * s
        gp = torch.where(y == 1, 1 / p, -1 / (1 - p)) * (y >= 0) * g
        gz = gp * (1 - c) * s * (1 - s)
        gc = (gp * (1 - s)).sum(0)
        return (gz * a).sum(1), (gz * d).sum(0), -(gz * a).sum(0), gc, None
