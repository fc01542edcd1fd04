import torch
from torch import Tensor


class _InvertKB(torch.autograd.Function):
    """Newton inversion of r = theta (1 + k1 theta^2 + k2 theta^4)."""

    @staticmethod
    def slope(theta, k):
        t2 = theta * theta
        return 1 + 3 * k[0] * t2 + 5 * k[1] * t2 * t2

    @staticmethod
    def forward(ctx, r, k, iters):
        theta = r.clone()
        for _ in range(iters):
            t2 = theta * theta
            f = theta * (1 + k[0] * t2 + k[1] * t2 * t2) - r
            theta = theta - f / _InvertKB.slope(theta, k)
        ctx.save_for_backward(theta, k)
        return theta

    @staticmethod
    def backward(ctx, g):
        theta, k = ctx.saved_tensors
        gr = g / _InvertKB.slope(theta, k)
        gk = -torch.stack([(gr * theta ** 3).sum(), (gr * theta ** 5).sum()])
        return gr, gk, None


def unproject_kannala_brandt(uv: Tensor, focal: Tensor, k: Tensor, iters: int = 20) -> Tensor:
    """Angle to the optical axis of fisheye pixels.

    uv: [N, 2] offsets from the principal point (non-zero); focal: scalar tensor; k: [2], mild so that the model is monotone
    """
    r = uv.norm(dim=-1) / focal
    return _InvertKB.apply(r, k, iters)
