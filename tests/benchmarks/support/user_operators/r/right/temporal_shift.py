import torch
import torch.nn as nn


class _Shift(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, fold):
        # x (N, T, C, H, W)
        ctx.fold = fold
        out = torch.zeros_like(x)
        out[:, :-1, :fold] = x[:, 1:, :fold]
        out[:, 1:, fold:2 * fold] = x[:, :-1, fold:2 * fold]
        out[:, :, 2 * fold:] = x[:, :, 2 * fold:]
        return out

    @staticmethod
    def backward(ctx, grad):
        fold = ctx.fold
        gx = torch.zeros_like(grad)
        gx[:, 1:, :fold] = grad[:, :-1, :fold]
        gx[:, :-1, fold:2 * fold] = grad[:, 1:, fold:2 * fold]
        gx[:, :, 2 * fold:] = grad[:, :, 2 * fold:]
        return gx, None


class TemporalShift(nn.Module):
    def __init__(self, n_segment=8, n_div=8):
        super().__init__()
        self.n_segment = n_segment
        self.n_div = n_div

    def forward(self, x):
        nt, c, h, w = x.shape
        x = x.reshape(nt // self.n_segment, self.n_segment, c, h, w)
        return _Shift.apply(x, c // self.n_div).reshape(nt, c, h, w)
