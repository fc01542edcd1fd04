import torch
import torch.nn as nn
import torch.nn.functional as F


def _box(x, win):
    return F.avg_pool2d(x, win, stride=1, padding=win // 2, count_include_pad=True) * (win * win)


class _LocalNCC(torch.autograd.Function):
    @staticmethod
    def forward(ctx, I, J, win, eps):
        n = win * win
        Is, Js = _box(I, win), _box(J, win)
        Iv = _box(I * I, win) - Is * Is / n
        Jv = _box(J * J, win) - Js * Js / n
        cross = _box(I * J, win) - Is * Js / n
        den = Iv * Jv + eps
        ctx.save_for_backward(I, J, Is, Js, Iv, Jv, cross, den)
        ctx.win = win
        return -(cross * cross / den).mean()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        I, J, Is, Js, Iv, Jv, cross, den = ctx.saved_tensors
        win, n = ctx.win, ctx.win * ctx.win
        g = -grad / cross.numel()
        g_cross = g * 2 * cross / den
        g_den = -g * cross * cross / den ** 2
        g_Iv, g_Jv = g_den * Jv, g_den * Iv
        g_IJ = _box(g_cross, win)
        gI = gJ = None
        if ctx.needs_input_grad[0]:
            gI = _box(-(g_cross * Js + 2 * g_Iv * Is) / n, win) + 2 * I * _box(g_Iv, win) + J * g_IJ
        if ctx.needs_input_grad[1]:
            gJ = _box(-(g_cross * Is + 2 * g_Jv * Js) / n, win) + 2 * J * _box(g_Jv, win) + I * g_IJ
        return gI, gJ, None, None


class LocalNCC(nn.Module):
    """Negative mean local squared correlation of a fixed and a moving image (B, 1, H, W).

    win: odd width of the square window; the outside counts as zeros
    """

    def __init__(self, win=3, eps=1e-3):
        super().__init__()
        if win % 2 == 0:
            raise ValueError("win must be odd")
        self.win = win
        self.eps = eps

    def forward(self, fixed, moving):
        return _LocalNCC.apply(fixed, moving, self.win, self.eps)
