import torch


def _N(x):
    return torch.special.ndtr(x)


def _phi(x):
    return torch.exp(-x * x / 2) * 0.3989422804014327


class BSCall(torch.autograd.Function):
    """Black-Scholes call with continuous dividend yield q; S, K, sigma, T of one shape, r and q numbers."""

    @staticmethod
    def _d(S, K, sigma, T, r, q):
        v = sigma * T.sqrt()
        d1 = (torch.log(S / K) + (r - q + sigma**2 / 2) * T) / v
        return d1, d1 - v

    @staticmethod
    def forward(ctx, S, K, sigma, T, r, q):
        ctx.save_for_backward(S, K, sigma, T)
        ctx.rates = r, q
        d1, d2 = BSCall._d(S, K, sigma, T, r, q)
        return S * torch.exp(-q * T) * _N(d1) - K * torch.exp(-r * T) * _N(d2)

    @staticmethod
    def backward(ctx, g):
        S, K, sigma, T = ctx.saved_tensors
        r, q = ctx.rates
        d1, d2 = BSCall._d(S, K, sigma, T, r, q)
        fwd, disc = torch.exp(-q * T), torch.exp(-r * T)
        delta = fwd * _N(d1)
        vega = S * fwd * _phi(d1) * T.sqrt()
        theta = vega * sigma / (2 * T) - q * S * delta + r * K * disc * _N(d2)
        return g * delta, -g * disc * _N(d2), g * vega, g * theta, None, None
