import math

import torch


@torch.library.custom_op("deepgp::nn_arcsin_kernel", mutates_args=())
def _nn_arcsin(x1: torch.Tensor, x2: torch.Tensor, bias: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    p = 1 + 2 * (bias + weight * x1.pow(2).sum(-1))
    q = 1 + 2 * (bias + weight * x2.pow(2).sum(-1))
    z = 2 * (bias + weight * x1 @ x2.mT) / torch.sqrt(p[:, None] * q[None])
    return 2 / math.pi * torch.asin(z)


@_nn_arcsin.register_fake
def _(x1, x2, bias, weight):
    return x1.new_empty(x1.shape[0], x2.shape[0])


def _setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _backward(ctx, grad):
    x1, x2, bias, weight = ctx.saved_tensors
    n1, n2, dot = x1.pow(2).sum(-1), x2.pow(2).sum(-1), x1 @ x2.mT
    p = 1 + 2 * (bias + weight * n1)
    q = 1 + 2 * (bias + weight * n2)
    root = torch.sqrt(p[:, None] * q[None])
    z = 2 * (bias + weight * dot) / root
    gz = grad * 2 / (math.pi * torch.sqrt(1 - z**2))
    ga = 2 * gz / root
    gp = -(gz * z).sum(1) / p
    gq = -(gz * z).sum(0) / q
    g1 = weight * (ga @ x2 + 2 * gp[:, None] * x1)
    g2 = weight * (ga.mT @ x1 + 2 * gq[:, None] * x2)
    g_bias = ga.sum() + gp.sum() + gq.sum()
    g_weight = (ga * dot).sum() + (gp * n1).sum() + (gq * n2).sum()
    return g1, g2, g_bias, g_weight


_nn_arcsin.register_autograd(_backward, setup_context=_setup)


def nn_arcsin_kernel(x1, x2, bias, weight):
    """Covariance of an infinitely wide network of error functions (Williams, 1998).

    Args:
        x1: ``(n, d)``.
        x2: ``(m, d)``.
        bias: prior variance of the biases, positive, 0-dim.
        weight: prior variance of the weights, positive, 0-dim.
    """
    return torch.ops.deepgp.nn_arcsin_kernel(x1, x2, bias, weight)
