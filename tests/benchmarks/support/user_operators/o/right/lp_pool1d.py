import torch
import torch.nn.functional as F
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def _starts(length, k, stride, dilation, device):
    n = (length - dilation * (k - 1) - 1) // stride + 1
    if n < 1:
        raise ValueError("window larger than the padded input")
    return torch.arange(n, device=device)[:, None] * stride


class LpPool1d(Function):
    """(sum |x|^p)^(1/p) over sliding windows of the last dimension; x is (B, C, T), p >= 1, zero padding."""

    @staticmethod
    def forward(ctx, x, p, kernel_size, stride=None, padding=0, dilation=1):
        if p < 1:
            raise ValueError("p must be at least 1")
        stride = kernel_size if stride is None else stride
        ctx.cfg = (p, kernel_size, stride, padding, dilation)
        padded = F.pad(x, (padding, padding))
        start = _starts(padded.size(-1), kernel_size, stride, dilation, x.device)
        win = padded[..., start + torch.arange(kernel_size, device=x.device) * dilation]
        total = win.abs().pow(p).sum(-1)
        ctx.save_for_backward(x, win, total)
        return total.pow(1.0 / p)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, win, total = ctx.saved_tensors
        p, k, stride, padding, dilation = ctx.cfg
        outer = torch.where(total > 0, total, torch.ones_like(total)).pow(1.0 / p - 1) * (total > 0)
        g_win = (grad * outer)[..., None] * win.abs().pow(p - 1) * win.sign()
        length = x.size(-1) + 2 * padding
        start = _starts(length, k, stride, dilation, x.device)
        where = (start + torch.arange(k, device=x.device) * dilation).flatten()
        g = grad.new_zeros(x.shape[:-1] + (length,))
        g.index_add_(-1, where, g_win.flatten(-2))
        return g[..., padding:padding + x.size(-1)], None, None, None, None, None
