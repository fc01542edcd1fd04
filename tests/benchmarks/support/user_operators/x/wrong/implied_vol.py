import torch

_SQRT2 = 2.0 ** 0.5


def _cdf(x):
    return 0.5 * (1 + torch.erf(x / _SQRT2))


def _d1(s, k, t, vol):
    return torch.log(s / k) / (vol * t.sqrt()) + 0.5 * vol * t.sqrt()


def _vega(s, k, t, vol):
    return s * t.sqrt() * torch.exp(-0.5 * _d1(s, k, t, vol) ** 2) / 2.5066282746310002


class ImpliedVol(torch.autograd.Function):
    """Black-Scholes volatility (zero rates) of a call from its price by Newton's method.

    price, spot, strike, expiry: tensors of one shape. Gradients by the implicit function
    theorem; expiry is taken as given.
    """

    @staticmethod
    def forward(ctx, price, s, k, t):
        vol = torch.full_like(price, 0.4)
        for _ in range(60):
            d1 = _d1(s, k, t, vol)
            err = s * _cdf(d1) - k * _cdf(d1 - vol * t.sqrt()) - price
            vol = (vol - err / _vega(s, k, t, vol)).clamp(1e-3, 5.0)
        ctx.save_for_backward(s, k, t, vol)
        return vol

    @staticmethod
    def backward(ctx, g):
        s, k, t, vol = ctx.saved_tensors
        d1 = _d1(s, k, t, vol)
        u = g / _vega(s, k, t, vol)
        return u, u * _cdf(d1), u * _cdf(d1 - vol * t.sqrt()), None
