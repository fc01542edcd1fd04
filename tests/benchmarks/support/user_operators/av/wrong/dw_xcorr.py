import torch
from torch import Tensor


def _windows(x: Tensor, h: int, w: int) -> Tensor:
    b, c, H, W = x.shape
    return x.as_strided((b, c, H - h + 1, W - w + 1, h, w), (c * H * W, H * W, W, 1, W, 1))


class DepthwiseXCorr(torch.autograd.Function):
    """Depth-wise cross-correlation of Siamese trackers, no padding.

    search (B, C, H, W), template (B, C, h, w) -> (B, C, H - h + 1, W - w + 1)
    """

    @staticmethod
    def forward(ctx, search: Tensor, template: Tensor) -> Tensor:
        ctx.save_for_backward(search, template)
        win = _windows(search.contiguous(), *template.shape[2:])
        return torch.einsum("bcyxhw,bchw->bcyx", win, template)

    @staticmethod
    def backward(ctx, g: Tensor):
        search, template = ctx.saved_tensors
        h, w = template.shape[2:]
        y, x = g.shape[2:]
        win = _windows(search, h, w)
        d_template = torch.einsum("bcyx,bcyxhw->bchw", g, win)
        d_search = g.new_zeros(search.shape)
        for j in range(h):
            for i in range(w):
                d_search[:, :, j : j + y, i : i + x] += g * template[:, :, j : j + 1, i : i + 1]
        return d_search, d_template
