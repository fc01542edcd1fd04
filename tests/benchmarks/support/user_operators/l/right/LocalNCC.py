"""Local normalised cross-correlation (VoxelMorph style) for 2-D registration."""
import torch
import torch.nn.functional as F
from torch.autograd import Function


def _box(x, win):
    # zero padded box sum; self-adjoint, as win is odd
    kernel = torch.ones(1, 1, win, win, dtype=x.dtype, device=x.device)
    return F.conv2d(x, kernel, padding=win // 2)


def _moments(I, J, win):
    n = float(win * win)
    sI, sJ = _box(I, win), _box(J, win)
    cross = _box(I * J, win) - sI * sJ / n
    var_I = _box(I * I, win) - sI * sI / n
    var_J = _box(J * J, win) - sJ * sJ / n
    return sI, sJ, cross, var_I, var_J


class LocalNCC(Function):
    """-mean(cross^2 / (var_I var_J + eps)) over windows of win x win pixels.

    I, J: (N, 1, H, W); win: odd
    """

    @staticmethod
    def forward(ctx, I, J, win=9, eps=1e-5):
        if win % 2 == 0:
            raise ValueError("win must be odd")
        ctx.save_for_backward(I, J)
        ctx.win, ctx.eps = win, eps
        _, _, cross, var_I, var_J = _moments(I, J, win)
        return -(cross * cross / (var_I * var_J + eps)).mean()

    @staticmethod
    def backward(ctx, grad):
        I, J = ctx.saved_tensors
        win = ctx.win
        n = float(win * win)
        sI, sJ, cross, var_I, var_J = _moments(I, J, win)
        den = var_I * var_J + ctx.eps
        scale = -grad / I.numel()
        d_cross = scale * 2 * cross / den
        d_den = -scale * cross * cross / (den * den)
        d_vI, d_vJ = d_den * var_J, d_den * var_I
        bc = _box(d_cross, win)
        gI = J * bc - _box(d_cross * sJ, win) / n
        gI = gI + 2 * (I * _box(d_vI, win) - _box(d_vI * sI, win) / n)
        gJ = I * bc - _box(d_cross * sI, win) / n
        gJ = gJ + 2 * (J * _box(d_vJ, win) - _box(d_vJ * sJ, win) / n)
        return gI, gJ, None, None
