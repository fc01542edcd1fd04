import torch


def _pieces(spot, sigma, lam, mu, delta, strike, maturity, rate, terms):
    n = torch.arange(terms, dtype=spot.dtype, device=spot.device)[:, None]
    m = mu + delta**2 / 2
    mean = lam * maturity * m.exp()
    weight = (-mean).exp() * mean**n / torch.lgamma(n + 1).exp()
    vol = torch.sqrt(sigma**2 + n * delta**2 / maturity)
    drift = rate - lam * (m.exp() - 1) + n * m / maturity
    d1 = ((spot / strike).log() + (drift + vol**2 / 2) * maturity) / (vol * maturity**0.5)
    cash = strike * (-drift * maturity).exp() * torch.special.ndtr(d1 - vol * maturity**0.5)
    return n, m, mean, weight, vol, d1, cash


class MertonJumpCall(torch.autograd.Function):
    """European call under Merton's jump diffusion.

    Parameters
    ----------
    spot : Tensor (n,)
    sigma, lam, mu, delta : Tensor, 0-dim
        Volatility (> 0), jump intensity (>= 0), mean and deviation of the log jump.
    strike, maturity, rate : float
    terms : int
        Terms of the Poisson series.
    """

    @staticmethod
    def forward(ctx, spot, sigma, lam, mu, delta, strike, maturity, rate, terms=20):
        ctx.save_for_backward(spot, sigma, lam, mu, delta)
        ctx.deal = strike, maturity, rate, terms
        _, _, _, weight, _, d1, cash = _pieces(spot, sigma, lam, mu, delta, *ctx.deal)
        return (weight * (spot * torch.special.ndtr(d1) - cash)).sum(0)

    @staticmethod
    def backward(ctx, grad):
        spot, sigma, lam, mu, delta = ctx.saved_tensors
        maturity = ctx.deal[1]
        n, m, mean, weight, vol, d1, cash = _pieces(spot, sigma, lam, mu, delta, *ctx.deal)
        price = spot * torch.special.ndtr(d1) - cash
        shifted = torch.cat([torch.zeros_like(weight[:1]), weight[:-1]])
        by_mean = ((shifted - weight) * price * grad).sum()
        by_drift = weight * maturity * cash * grad
        vega = weight * spot * torch.exp(-(d1**2) / 2) / (2 * torch.pi) ** 0.5 * maturity**0.5 * grad
        g_lam = by_mean * maturity * m.exp() - by_drift.sum() * (m.exp() - 1)
        g_m = by_mean * mean + (by_drift * (n / maturity - lam * m.exp())).sum()
        g_sigma = (vega * sigma / vol).sum()
        g_delta = g_m * delta + (vega * n * delta / (maturity * vol)).sum()
        g_spot = grad * (weight * torch.special.ndtr(d1)).sum(0)
        return g_spot, g_sigma, g_lam, g_m, g_delta, None, None, None, None
