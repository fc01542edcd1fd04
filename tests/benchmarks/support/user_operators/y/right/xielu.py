"""xIELU (arXiv 2411.13010) with its two learned coefficients."""
import torch
import torch.nn.functional as F
from torch import Tensor


@torch.library.custom_op("yops::xielu", mutates_args=())
def _xielu(x: Tensor, alpha_p: Tensor, alpha_n: Tensor, beta: float, eps: float) -> Tensor:
    ap = F.softplus(alpha_p)
    an = beta + F.softplus(alpha_n)
    pos = ap * x * x + beta * x
    neg = (torch.expm1(x.clamp(max=eps)) - x) * an + beta * x
    return torch.where(x > 0, pos, neg)


@_xielu.register_fake
def _(x, alpha_p, alpha_n, beta, eps):
    return torch.empty_like(x)


def _setup(ctx, inputs, output):
    x, ap, an, ctx.beta, ctx.eps = inputs
    ctx.save_for_backward(x, ap, an)


def _backward(ctx, g):
    x, alpha_p, alpha_n = ctx.saved_tensors
    ap, an = F.softplus(alpha_p), ctx.beta + F.softplus(alpha_n)
    positive = x > 0
    xc = x.clamp(max=ctx.eps)
    slope = torch.where(x < ctx.eps, xc.exp(), torch.zeros_like(x)) - 1
    gx = g * (torch.where(positive, 2 * ap * x, slope * an) + ctx.beta)
    gp = torch.where(positive, g * x * x, torch.zeros_like(x)).sum() * torch.sigmoid(alpha_p)
    gn = torch.where(positive, torch.zeros_like(x), g * (torch.expm1(xc) - x)).sum() * torch.sigmoid(alpha_n)
    return gx, gp, gn, None, None


_xielu.register_autograd(_backward, setup_context=_setup)


def xielu(x, alpha_p, alpha_n, beta=0.5, eps=-1e-6):
    return torch.ops.yops.xielu(x, alpha_p, alpha_n, beta, eps)
