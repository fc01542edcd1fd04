import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function


class PartialConv2d(Function):
    """Partial convolution for inpainting. x (B, C, H, W), mask (B, 1, H, W) of 0 and 1 (no gradient),
    weight (O, C, k, k), bias (O,) -> output, updated mask (not differentiable)"""

    @staticmethod
    def _geometry(x, mask, k, stride, padding):
        total = F.unfold(mask, k, padding=padding, stride=stride).sum(1, keepdim=True)
        valid = (total > 0).to(x.dtype)
        ratio = valid * k * k / total.clamp(min=1)
        cols = F.unfold(x * mask, k, padding=padding, stride=stride)
        return cols, ratio, valid

    @staticmethod
    def forward(ctx, x: Tensor, mask: Tensor, weight: Tensor, bias: Tensor, stride: int, padding: int):
        ctx.save_for_backward(x, mask, weight)
        ctx.stride, ctx.padding = stride, padding
        k = weight.size(-1)
        cols, ratio, valid = PartialConv2d._geometry(x, mask, k, stride, padding)
        y = (weight.flatten(1) @ cols) * ratio + bias[:, None] * valid
        h, w = ((n + 2 * padding - k) // stride + 1 for n in x.shape[2:])
        new_mask = valid.view(-1, 1, h, w)
        ctx.mark_non_differentiable(new_mask)
        return y.view(x.size(0), -1, h, w), new_mask

    @staticmethod
    def backward(ctx, g: Tensor, _):
        x, mask, weight = ctx.saved_tensors
        k = weight.size(-1)
        cols, ratio, valid = PartialConv2d._geometry(x, mask, k, ctx.stride, ctx.padding)
        g = g.flatten(2)
        dbias = (g * valid).sum((0, 2))
        g = g * ratio
        dweight = torch.einsum("bol,bkl->ok", g, cols).view(weight.shape)
        dcols = weight.flatten(1).T @ g
        dx = F.fold(dcols, x.shape[2:], k, padding=ctx.padding, stride=ctx.stride) * mask
        return dx, None, dweight, dbias, None, None
