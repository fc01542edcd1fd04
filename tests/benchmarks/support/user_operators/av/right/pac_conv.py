import torch
import torch.nn.functional as F
from torch import Tensor


class PACConv(torch.autograd.Function):
    """Pixel-adaptive convolution: taps weighted by exp(-|f_i - f_j|^2 / 2) of guidance features.

    x (B, C, H, W), guide (B, F, H, W), weight (O, C, k, k), bias (O,) or None; odd k, same size
    """

    @staticmethod
    def _unfold(x: Tensor, k: int) -> Tensor:
        return F.unfold(x, k, padding=k // 2).reshape(x.size(0), x.size(1), k * k, -1)

    @staticmethod
    def forward(ctx, x: Tensor, guide: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, guide, weight, bias)
        k = weight.size(-1)
        cols = PACConv._unfold(x, k)
        diff = PACConv._unfold(guide, k) - guide.flatten(2).unsqueeze(2)
        kern = torch.exp(-0.5 * diff.square().sum(1, keepdim=True))
        y = torch.einsum("bckl,ock->bol", cols * kern, weight.flatten(2))
        if bias is not None:
            y = y + bias[:, None]
        return y.view(x.size(0), -1, *x.shape[2:])

    @staticmethod
    def backward(ctx, g: Tensor):
        x, guide, weight, bias = ctx.saved_tensors
        k, size = weight.size(-1), x.shape[2:]
        cols, gl = PACConv._unfold(x, k), g.flatten(2)
        diff = PACConv._unfold(guide, k) - guide.flatten(2).unsqueeze(2)
        kern = torch.exp(-0.5 * diff.square().sum(1, keepdim=True))
        dcols = torch.einsum("bol,ock->bckl", gl, weight.flatten(2))
        dw = torch.einsum("bol,bckl->ock", gl, cols * kern).view(weight.shape)
        dx = F.fold((dcols * kern).flatten(1, 2), size, k, padding=k // 2)
        ddiff = -(dcols * cols).sum(1, keepdim=True) * kern * diff
        dguide = -ddiff.sum(2).view(guide.shape)
        dguide = dguide + F.fold(ddiff.flatten(1, 2), size, k, padding=k // 2)
        return dx, dguide, dw, None if bias is None else gl.sum((0, 2))
