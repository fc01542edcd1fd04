import torch
from torch import Tensor


class SoftSilhouette(torch.autograd.Function):
    """Probability that a pixel is covered: 1 - prod_f (1 - sigmoid(d_f / sigma)).

    dist: (P, F) signed squared distances, positive inside; faces with valid == False are left out.
    """

    @staticmethod
    def forward(ctx, dist: Tensor, valid: Tensor, sigma: float = 1e-1) -> Tensor:
        ctx.save_for_backward(dist, valid)
        ctx.sigma = sigma
        return 1 - SoftSilhouette.outside(dist, valid, sigma).prod(1)

    @staticmethod
    def outside(dist, valid, sigma):
        return torch.sigmoid(-dist / sigma).masked_fill(~valid, 1.0)

    @staticmethod
    def backward(ctx, g: Tensor):
        dist, valid = ctx.saved_tensors
        out = SoftSilhouette.outside(dist, valid, ctx.sigma)
        inside = 1 - out
        total = out.prod(1, keepdim=True)
        gd = g[:, None] * total * inside / ctx.sigma
        return gd, None, None
