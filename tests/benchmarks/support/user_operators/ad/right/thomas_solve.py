import torch
from torch.autograd.function import once_differentiable


class TridiagonalSolve(torch.autograd.Function):
    """Batched Thomas algorithm (implicit diffusion step of a column).

    a (B, n) sub-diagonal with a[:, 0] unused, b (B, n) diagonal, c (B, n) super-diagonal with
    c[:, -1] unused, d (B, n) right-hand side.
    """

    @staticmethod
    def forward(ctx, a, b, c, d):
        x = TridiagonalSolve._solve(a, b, c, d)
        ctx.save_for_backward(a, b, c, x)
        return x

    @staticmethod
    def _solve(a, b, c, d):
        n = b.shape[1]
        b, d = b.clone(), d.clone()
        for i in range(1, n):
            w = a[:, i] / b[:, i - 1]
            b[:, i] -= w * c[:, i - 1]
            d[:, i] -= w * d[:, i - 1]
        x = torch.empty_like(d)
        x[:, -1] = d[:, -1] / b[:, -1]
        for i in range(n - 2, -1, -1):
            x[:, i] = (d[:, i] - c[:, i] * x[:, i + 1]) / b[:, i]
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_x):
        a, b, c, x = ctx.saved_tensors
        at = torch.roll(c, 1, 1)
        ct = torch.roll(a, -1, 1)
        lam = TridiagonalSolve._solve(at, b, ct, grad_x)
        ga = torch.zeros_like(a)
        gc = torch.zeros_like(c)
        ga[:, 1:] = -lam[:, 1:] * x[:, :-1]
        gc[:, :-1] = -lam[:, :-1] * x[:, 1:]
        return ga, -lam * x, gc, lam
