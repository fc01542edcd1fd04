from typing import Union
import torch
from torch import Tensor


class _MuLaw(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, mu: Tensor) -> Tensor:
        ctx.save_for_backward(x, mu)
        return x.sign() * torch.log1p(mu * x.abs()) / torch.log1p(mu)

    @staticmethod
    def backward(ctx, grad: Tensor):
        x, mu = ctx.saved_tensors
        a = x.abs()
        lg = torch.log1p(mu)
        denom = 1 + mu * a
        dx = grad * mu / (denom * lg)
        dmu = grad * x.sign() * (a / denom - torch.log1p(mu * a) / ((1 + mu) * lg)) / lg
        return dx, dmu.sum()


def mu_compress(x: Tensor, mu: Union[float, Tensor] = 255.0) -> Tensor:
    """Mu-law companding of a waveform in [-1, 1]; `mu` may be a learnable scalar tensor."""
    if not isinstance(mu, Tensor):
        mu = torch.tensor(float(mu), dtype=x.dtype, device=x.device)
    if mu.dim() != 0:
        raise ValueError("mu has to be a scalar")
    return _MuLaw.apply(x, mu)
