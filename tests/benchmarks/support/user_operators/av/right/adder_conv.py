import torch
import torch.nn.functional as F
from torch import Tensor


class _AdderConv(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, stride: int, padding: int) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.stride, ctx.padding = stride, padding
        k = weight.size(-1)
        cols = F.unfold(x, k, stride=stride, padding=padding)
        y = torch.stack([-(cols - w.flatten()[:, None]).abs().sum(1) for w in weight], 1)
        return y.view(*y.shape[:2], (x.size(2) + 2 * padding - k) // stride + 1, -1)

    @staticmethod
    def backward(ctx, g: Tensor):
        x, weight = ctx.saved_tensors
        k, g = weight.size(-1), g.flatten(2)
        cols = F.unfold(x, k, stride=ctx.stride, padding=ctx.padding)
        dcols, dw = torch.zeros_like(cols), []
        for o, w in enumerate(weight):  # one output channel at a time, the difference is big
            s = torch.sign(cols - w.flatten()[:, None]) * g[:, o : o + 1]
            dw.append(s.sum((0, 2)).view(w.shape))
            dcols = dcols - s
        dx = F.fold(dcols, x.shape[2:], k, stride=ctx.stride, padding=ctx.padding)
        return dx, torch.stack(dw), None, None


def adder_conv(x: Tensor, weight: Tensor, stride: int = 1, padding: int = 0) -> Tensor:
    """AdderNet layer: minus the L1 distance of patches to filters, with its true gradient. weight (O, C, k, k)"""
    return _AdderConv.apply(x, weight, stride, padding)
