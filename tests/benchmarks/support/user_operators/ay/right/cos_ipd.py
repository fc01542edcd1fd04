import torch


class CosIPD(torch.autograd.Function):
    @staticmethod
    def forward(ctx, X, eps=1e-4):
        ctx.save_for_backward(X)
        ctx.eps = eps
        a, b = X[:, 1:], X[:, :1]
        return (a * b.conj()).real / (a.abs() * b.abs() + eps)

    @staticmethod
    def backward(ctx, g):
        X, = ctx.saved_tensors
        a, b = X[:, 1:], X[:, :1]
        D = a.abs() * b.abs() + ctx.eps
        y = (a * b.conj()).real / D
        gy = g / D
        gd = -gy * y
        ga = gy * b + gd * b.abs() * a.sgn()
        gb = (gy * a + gd * a.abs() * b.sgn()).sum(1, keepdim=True)
        return torch.cat([gb, ga], 1), None
