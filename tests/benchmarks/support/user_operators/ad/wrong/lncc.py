import torch
from torch.nn import functional as F


class LocalNCC(torch.autograd.Function):

    @staticmethod
    def _box(t, win):
        k = t.new_ones(1, 1, win, win)
        return F.conv2d(t, k, padding=win // 2)

    @staticmethod
    def forward(ctx, fixed, moving, win=3, eps=1e-5):
        box = LocalNCC._box
        n = float(win * win)
        sI, sJ = box(fixed, win), box(moving, win)
        cross = box(fixed * moving, win) - sI * sJ / n
        vI = box(fixed * fixed, win) - sI * sI / n
        vJ = box(moving * moving, win) - sJ * sJ / n
        den = vI * vJ + eps
        cc = cross * cross / den
        ctx.save_for_backward(fixed, moving, sI, sJ, cross, vI, vJ, den)
        ctx.win = win
        return -cc.mean()

    @staticmethod
    def backward(ctx, grad_out):
        I, J, sI, sJ, cross, vI, vJ, den = ctx.saved_tensors
        win = ctx.win
        n = float(win * win)
        box = LocalNCC._box
        g = -grad_out / cross.numel()
        d_cross = g * 2 * cross / den
        d_vI = -g * cross ** 2 * vJ / den ** 2
        d_vJ = -g * cross ** 2 * vI / den ** 2
        gI = gJ = None
        if ctx.needs_input_grad[0]:
            gI = box(d_cross, win) * J - box(d_cross * sJ, win) / n
            gI = gI + 2 * I * box(d_vI, win) - 2 * box(d_vI * sI, win) / n
        if ctx.needs_input_grad[1]:
            gJ = box(d_cross, win) * I - box(d_cross * sI, win) / n
            gJ = gJ + 2 * J * box(d_vJ, win)
        return gI, gJ, None, None
