import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


def _act(h, kind):
    return F.gelu(h) if kind == "gelu" else F.relu(h).square()


def _act_grad(h, kind):
    if kind == "gelu":
        cdf = 0.5 * (1 + torch.erf(h * 0.5 ** 0.5))
        return cdf + h * torch.exp(-0.5 * h * h) * 0.3989422804014327
    return 2 * F.relu(h)


class CheckpointedFFN(torch.autograd.Function):
    """W2 act(W1 x + b1) + b2 that keeps only x and computes the hidden layer again in backward.

    x: (..., D), w1: (H, D), b1: (H,), w2: (D2, H), b2: (D2,); act: "gelu" or "relu2"
    """

    @staticmethod
    def forward(ctx, x, w1, b1, w2, b2, act="gelu"):
        ctx.save_for_backward(x, w1, b1, w2)
        ctx.act = act
        return F.linear(_act(F.linear(x, w1, b1), act), w2, b2)

    @staticmethod
    @once_differentiable
    def backward(ctx, gy):
        x, w1, b1, w2 = ctx.saved_tensors
        x2 = x.reshape(-1, x.shape[-1])
        g2 = gy.reshape(-1, gy.shape[-1])
        h = F.linear(x2, w1, b1)
        ga = g2 @ w2
        gh = ga * _act_grad(h, ctx.act)
        gw2 = g2.t() @ _act(h, ctx.act)
        return (gh @ w1).view_as(x), gh.t() @ x2, gh.sum(0), gw2, g2.sum(0), None
