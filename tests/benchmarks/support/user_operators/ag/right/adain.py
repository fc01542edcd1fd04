from typing import Tuple

import torch
from torch import Tensor, nn
from torch.autograd import Function


def calc_mean_std(feat: Tensor, eps: float) -> Tuple[Tensor, Tensor]:
    var = feat.var(dim=-1, keepdim=True) + eps
    return feat.mean(dim=-1, keepdim=True), var.sqrt()


class AdaINFunction(Function):
    @staticmethod
    def forward(ctx, content: Tensor, style: Tensor, eps: float) -> Tensor:
        mc, sc = calc_mean_std(content, eps)
        ms, ss = calc_mean_std(style, eps)
        ctx.save_for_backward(content, style)
        ctx.eps = eps
        return (content - mc) / sc * ss + ms

    @staticmethod
    def backward(ctx, g: Tensor):
        content, style = ctx.saved_tensors
        mc, sc = calc_mean_std(content, ctx.eps)
        ms, ss = calc_mean_std(style, ctx.eps)
        n, k = content.shape[-1], style.shape[-1]
        h = (content - mc) / sc
        gh = (g * h).sum(-1, keepdim=True)
        gc = gs = None
        if ctx.needs_input_grad[0]:
            gc = ss / sc * (g - g.mean(-1, keepdim=True) - h * gh / (n - 1))
        if ctx.needs_input_grad[1]:
            gs = g.sum(-1, keepdim=True) / k + gh * (style - ms) / (ss * (k - 1))
        return gc, gs, None


class AdaIN(nn.Module):
    """content (N, C, *), style (N, C, *): spatial sizes may differ. ``strength`` is learned, 1 = full style."""

    def __init__(self, strength: float = 1.0, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.strength = nn.Parameter(torch.tensor(float(strength)))

    def forward(self, content: Tensor, style: Tensor) -> Tensor:
        assert content.shape[:2] == style.shape[:2]
        out = AdaINFunction.apply(content.flatten(2), style.flatten(2), self.eps)
        return torch.lerp(content, out.reshape(content.shape), self.strength)
