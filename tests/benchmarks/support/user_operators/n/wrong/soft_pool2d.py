import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class SoftPool2d(torch.autograd.Function):
    """Exponentially weighted pooling: each window gives sum(softmax(x) * x).

    x: (N, C, H, W); trailing rows and columns that fill no window are dropped.
    """

    @staticmethod
    def forward(ctx, x, kernel_size=2, stride=None):
        stride = kernel_size if stride is None else stride
        N, C, H, W = x.shape
        oh = (H - kernel_size) // stride + 1
        ow = (W - kernel_size) // stride + 1
        cols = F.unfold(x.reshape(N * C, 1, H, W), kernel_size, stride=stride)   # (NC, kk, L)
        w = cols.softmax(dim=1)
        y = (w * cols).sum(1)
        ctx.save_for_backward(cols, w, y)
        ctx.geometry = (N, C, H, W, kernel_size, stride)
        return y.view(N, C, oh, ow)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        cols, w, y = ctx.saved_tensors
        N, C, H, W, k, s = ctx.geometry
        g = grad_output.reshape(N * C, 1, y.size(1))
        g_cols = g * w
        g_x = F.fold(g_cols, (H, W), k, stride=s)
        return g_x.view(N, C, H, W), None, None
