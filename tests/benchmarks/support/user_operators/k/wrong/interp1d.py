import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class _Interp(Function):
    @staticmethod
    def forward(ctx, xq: Tensor, xp: Tensor, fp: Tensor) -> Tensor:
        seg = torch.searchsorted(xp, xq.detach().contiguous()).clamp(1, xp.numel() - 1) - 1
        ctx.save_for_backward(xq, xp, fp, seg)
        w = ((xq - xp[seg]) / (xp[seg + 1] - xp[seg])).clamp(0, 1)
        return fp[seg] * (1 - w) + fp[seg + 1] * w

    @staticmethod
    @once_differentiable
    def backward(ctx, g: Tensor):
        xq, xp, fp, seg = ctx.saved_tensors
        width = xp[seg + 1] - xp[seg]
        w = ((xq - xp[seg]) / width).clamp(0, 1)
        inside = xq > xp[0]
        slope = (fp[seg + 1] - fp[seg]) / width * inside
        flat, left, right = g.reshape(-1), seg.reshape(-1), seg.reshape(-1) + 1
        wf, sf = w.reshape(-1), slope.reshape(-1)
        g_fp = torch.zeros_like(fp)
        g_fp.index_add_(0, left, flat * (1 - wf)).index_add_(0, right, flat * wf)
        g_xp = torch.zeros_like(xp)
        g_xp.index_add_(0, left, -flat * sf * (1 - wf)).index_add_(0, right, -flat * sf * wf)
        return g * slope, g_xp, g_fp


def interp1d(xq: Tensor, xp: Tensor, fp: Tensor) -> Tensor:
    """Like numpy.interp, differentiable in all three arguments.

    Args:
        xq: where to evaluate, any shape
        xp: knots (K,), strictly increasing, K >= 2
        fp: values at the knots (K,)

    Outside of the knots the value is that of the nearest end.
    """
    if xp.dim() != 1 or xp.shape != fp.shape or xp.numel() < 2:
        raise ValueError("xp and fp must be (K,) with K >= 2")
    return _Interp.apply(xq, xp, fp)
