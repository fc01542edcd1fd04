import torch
from torch.autograd.function import once_differentiable


def _apply_inverse(d, U, b):
    k = U.shape[1]
    Db, DU = b / d[:, None], U / d[:, None]
    cap = torch.eye(k, dtype=d.dtype, device=d.device) + U.t() @ DU
    return Db - DU @ torch.linalg.solve(cap, U.t() @ Db)


class WoodburySolve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, d, U, b):
        x = _apply_inverse(d, U, b)
        ctx.save_for_backward(d, U, x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        d, U, x = ctx.saved_tensors
        y = _apply_inverse(d, U, grad)
        g_d = -(y * x).sum(1)
        g_U = -2 * y @ (x.t() @ U)
        return g_d, g_U, y


def low_rank_solve(d, U, b):
    """(diag(d) + U U^T)^-1 b with d (n,) > 0, U (n, k), b (n, m) or (n,)"""
    if b.dim() == 1:
        return WoodburySolve.apply(d, U, b[:, None])[:, 0]
    return WoodburySolve.apply(d, U, b)
