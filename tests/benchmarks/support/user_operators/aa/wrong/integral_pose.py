import torch
from torch import Tensor


class SoftArgmax2d(torch.autograd.Function):
    """Expected (x, y) pixel under a softmax of the heatmap.

    heat: [B, J, H, W]; beta: inverse temperature (python float) -> [B, J, 2]
    """

    @staticmethod
    def forward(ctx, heat: Tensor, beta: float = 1.0) -> Tensor:
        ctx.save_for_backward(heat)
        ctx.beta = beta
        p, xs, ys = SoftArgmax2d._prob(heat, beta)
        return torch.stack([(p * xs).sum((-2, -1)), (p * ys).sum((-2, -1))], -1)

    @staticmethod
    def _prob(heat, beta):
        H, W = heat.shape[-2:]
        p = (beta * heat).flatten(-2).softmax(-1).view_as(heat)
        xs = torch.arange(W, dtype=heat.dtype, device=heat.device)
        ys = torch.arange(H, dtype=heat.dtype, device=heat.device)[:, None]
        return p, xs, ys

    @staticmethod
    def backward(ctx, g: Tensor):
        (heat,) = ctx.saved_tensors
        p, xs, ys = SoftArgmax2d._prob(heat, ctx.beta)
        gx, gy = g[..., 0, None, None], g[..., 1, None, None]
        gp = gx * xs + gy * ys
        mean = (p * gp).sum((-2, -1), keepdim=True)
        return p * (gp - mean), None
