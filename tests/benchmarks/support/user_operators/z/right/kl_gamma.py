import torch
from torch import Tensor


@torch.library.custom_op("zops::kl_gamma", mutates_args=())
def kl_gamma(a1: Tensor, b1: Tensor, a2: Tensor, b2: Tensor) -> Tensor:
    """KL(Gamma(a1, rate b1) || Gamma(a2, rate b2)), elementwise, equal shapes."""
    return (
        (a1 - a2) * torch.digamma(a1)
        - torch.lgamma(a1)
        + torch.lgamma(a2)
        + a2 * (b1.log() - b2.log())
        + a1 * (b2 - b1) / b1
    )


@kl_gamma.register_fake
def _(a1, b1, a2, b2):
    return torch.empty_like(a1)


def _save(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _kl_gamma_backward(ctx, g):
    a1, b1, a2, b2 = ctx.saved_tensors
    ga1 = (a1 - a2) * torch.polygamma(1, a1) + b2 / b1 - 1
    gb1 = a2 / b1 - a1 * b2 / b1**2
    ga2 = torch.digamma(a2) - torch.digamma(a1) + b1.log() - b2.log()
    gb2 = a1 / b1 - a2 / b2
    return g * ga1, g * gb1, g * ga2, g * gb2


torch.library.register_autograd("zops::kl_gamma", _kl_gamma_backward, setup_context=_save)
