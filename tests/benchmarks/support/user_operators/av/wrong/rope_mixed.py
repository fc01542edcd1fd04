import torch
from torch import Tensor


def _pairs(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.unflatten(-1, (-1, 2)).unbind(-1)


def _join(a: Tensor, b: Tensor) -> Tensor:
    return torch.stack([a, b], -1).flatten(-2)


class RopeMixed(torch.autograd.Function):
    """2D rotary embedding with learned mixed frequencies.

    x (B, H, N, D), freqs (H, D / 2, 2), pos (N, 2)
    """

    @staticmethod
    def forward(ctx, x: Tensor, freqs: Tensor, pos: Tensor) -> Tensor:
        theta = torch.einsum("nc,hfc->hnf", pos.to(freqs.dtype), freqs)
        cos, sin = theta.cos(), theta.sin()
        a, b = _pairs(x)
        y = _join(a * cos - b * sin, a * sin + b * cos)
        ctx.save_for_backward(freqs, pos, x)
        return y

    @staticmethod
    def backward(ctx, g: Tensor):
        freqs, pos, y = ctx.saved_tensors
        p = pos.to(freqs.dtype)
        theta = torch.einsum("nc,hfc->hnf", p, freqs)
        cos, sin = theta.cos(), theta.sin()
        ga, gb = _pairs(g)
        ya, yb = _pairs(y)
        dx = _join(ga * cos + gb * sin, gb * cos - ga * sin)
        dtheta = (gb * ya - ga * yb).sum(0)
        dfreqs = torch.einsum("hnf,nc->hfc", dtheta, p)
        dpos = torch.einsum("hnf,hfc->nc", dtheta, freqs) if ctx.needs_input_grad[2] else None
        return dx, dfreqs, dpos
