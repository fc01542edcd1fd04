# companding with a trainable mu
import torch
from torch import Tensor


@torch.library.custom_op("codec_b::mu_law", mutates_args=())
def mu_law(x: Tensor, mu: Tensor) -> Tensor:
    return torch.sign(x) * torch.log1p(mu * x.abs()) / torch.log1p(mu)


@mu_law.register_fake
def _(x, mu):
    return torch.empty_like(x)


def _save(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _grad(ctx, grad):
    x, mu = ctx.saved_tensors
    size = x.abs()
    inner = 1 + mu * size
    norm = torch.log1p(mu.detach())
    d_x = grad * mu / (inner * norm)
    d_mu = grad * torch.sign(x) * (size / (inner * norm) - torch.log1p(mu * size) / (norm**2 * (1 + mu)))
    return d_x, d_mu.sum()


mu_law.register_autograd(_grad, setup_context=_save)
