import torch
from torch import nn


class _Expectation(torch.autograd.Function):
    @staticmethod
    def axes(h, w, normalized, like):
        ys = torch.arange(h, dtype=like.dtype, device=like.device)
        xs = torch.arange(w, dtype=like.dtype, device=like.device)
        if normalized:
            ys, xs = 2 * (ys + 0.5) / h - 1, 2 * (xs + 0.5) / w - 1
        return ys[:, None], xs[None, :]

    @staticmethod
    def forward(ctx, heat, beta, normalized):
        h, w = heat.shape[-2:]
        p = (beta * heat).flatten(-2).softmax(-1).unflatten(-1, (h, w))
        ys, xs = _Expectation.axes(h, w, normalized, heat)
        ctx.save_for_backward(heat, beta)
        ctx.normalized = normalized
        return torch.stack([(p * xs).sum((-2, -1)), (p * ys).sum((-2, -1))], -1)

    @staticmethod
    def backward(ctx, g):
        heat, beta = ctx.saved_tensors
        h, w = heat.shape[-2:]
        p = (beta * heat).flatten(-2).softmax(-1).unflatten(-1, (h, w))
        ys, xs = _Expectation.axes(h, w, ctx.normalized, heat)
        gp = g[..., 1, None, None] * xs + g[..., 0, None, None] * ys
        gz = p * (gp - (gp * p).sum((-2, -1), keepdim=True))
        return beta * gz, (gz * heat).sum(), None


class SoftArgmax2d(nn.Module):
    """Heatmaps (B, K, H, W) to keypoints (B, K, 2) as x, y.

    beta=None makes the sharpness a parameter.
    """

    def __init__(self, beta=None, normalized=True):
        super().__init__()
        if beta is None:
            self.beta = nn.Parameter(torch.ones(()))
        else:
            self.register_buffer("beta", torch.tensor(float(beta)))
        self.normalized = normalized

    def forward(self, heat):
        return _Expectation.apply(heat, self.beta, self.normalized)
