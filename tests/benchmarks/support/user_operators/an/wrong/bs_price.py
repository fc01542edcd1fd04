import math
import torch

SQRT2 = math.sqrt(2.0)


def ncdf(x):
    return 0.5 * torch.erfc(-x / SQRT2)


def npdf(x):
    return torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


class BSPrice(torch.autograd.Function):
    """European option, backward = closed-form greeks.  All arguments broadcast."""

    @staticmethod
    def _d(S, K, T, r, vol):
        sT = vol * T.sqrt()
        d1 = (torch.log(S / K) + (r + 0.5 * vol ** 2) * T) / sT
        return d1, d1 - sT

    @staticmethod
    def forward(ctx, S, K, T, r, vol, put=False):
        ctx.save_for_backward(S, K, T, r, vol)
        ctx.put = put
        d1, d2 = BSPrice._d(S, K, T, r, vol)
        df = torch.exp(-r * T)
        if put:
            return K * df * ncdf(-d2) - S * ncdf(-d1)
        return S * ncdf(d1) - K * df * ncdf(d2)

    @staticmethod
    def backward(ctx, g):
        S, K, T, r, vol = ctx.saved_tensors
        d1, d2 = BSPrice._d(S, K, T, r, vol)
        df = torch.exp(-r * T)
        vega = S * npdf(d1) * T.sqrt()
        decay = S * npdf(d1) * vol / (2 * T.sqrt())
        if ctx.put:
            delta = ncdf(d1) - 1
            dual = df * ncdf(-d2)
            rho = -K * T * df * ncdf(d2)
            dT = decay - r * K * df * ncdf(-d2)
        else:
            delta = ncdf(d1)
            dual = -df * ncdf(d2)
            rho = K * T * df * ncdf(d2)
            dT = decay + r * K * df * ncdf(d2)
        out = [(g * w).sum_to_size(v.shape) for w, v in
               ((delta, S), (dual, K), (dT, T), (rho, r), (vega, vol))]
        return (*out, None)
