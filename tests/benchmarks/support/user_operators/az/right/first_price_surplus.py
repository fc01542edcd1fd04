from __future__ import annotations

import torch


class _Surplus(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value, bid, mu, sigma):
        ctx.save_for_backward(value, bid, mu, sigma)
        return (value - bid) * torch.sigmoid((bid.log() - mu) / sigma)

    @staticmethod
    def backward(ctx, g):
        value, bid, mu, sigma = ctx.saved_tensors
        z = (bid.log() - mu) / sigma
        win = torch.sigmoid(z)
        density = win * (1 - win)
        gz = g * (value - bid) * density / sigma
        d_value = d_bid = d_mu = d_sigma = None
        if ctx.needs_input_grad[0]:
            d_value = (g * win).sum_to_size(value.shape)
        if ctx.needs_input_grad[1]:
            d_bid = (gz / bid - g * win).sum_to_size(bid.shape)
        if ctx.needs_input_grad[2]:
            d_mu = (-gz).sum_to_size(mu.shape)
        if ctx.needs_input_grad[3]:
            d_sigma = (-gz * z).sum_to_size(sigma.shape)
        return d_value, d_bid, d_mu, d_sigma


def first_price_surplus(
    value: torch.Tensor, bid: torch.Tensor, mu: torch.Tensor, sigma: torch.Tensor
) -> torch.Tensor:
    """Expected surplus of a bid in a first-price auction under a log-logistic win-rate curve.

    The arguments broadcast against each other; ``bid`` and ``sigma`` must be positive.
    """
    assert bool((bid > 0).all()) and bool((sigma > 0).all())
    return _Surplus.apply(value, bid, mu, sigma)
