"""Continuous ranked probability score of a Gaussian forecast."""
import math

import torch
from torch import Tensor

_INV_SQRT_PI = 1 / math.sqrt(math.pi)


def _phi(z: Tensor) -> Tensor:
    return torch.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)


def _two_sided(z: Tensor) -> Tensor:
    return torch.erf(z / math.sqrt(2))


@torch.library.custom_op("forecast_scores::crps_gaussian", mutates_args=())
def _crps(mu: Tensor, sigma: Tensor, y: Tensor) -> Tensor:
    z = (y - mu) / sigma
    return sigma * (z * _two_sided(z) + 2 * _phi(z) - _INV_SQRT_PI)


@_crps.register_fake
def _(mu, sigma, y):
    return torch.empty_like(mu)


def _save(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _grad(ctx, g):
    mu, sigma, y = ctx.saved_tensors
    z = (y - mu) / sigma
    g_y = g * _two_sided(z)
    g_sigma = g * (2 * _phi(z) - _INV_SQRT_PI)
    return -g_y, g_sigma, g_y


_crps.register_autograd(_grad, setup_context=_save)


def crps_gaussian(mu: Tensor, sigma: Tensor, y: Tensor, reduction: str = "mean") -> Tensor:
    """CRPS of N(mu, sigma^2) at the observation y; the three have one shape, sigma > 0.

    reduction: 'none', 'mean' or 'sum'.

    >>> crps_gaussian(torch.zeros(1), torch.ones(1), torch.zeros(1)).item()  # doctest: +ELLIPSIS
    0.2336...
    """
    if not mu.shape == sigma.shape == y.shape:
        raise ValueError("mu, sigma and y must have the same shape")
    score = _crps(mu, sigma, y)
    if reduction == "mean":
        return score.mean()
    if reduction == "sum":
        return score.sum()
    if reduction == "none":
        return score
    raise ValueError(f"unknown reduction {reduction!r}")
