import math
import torch


def _npdf(x):
    return torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)


class _BS(torch.autograd.Function):
    @staticmethod
    def d12(s, k, vol, t, r, q):
        srt = vol * t.sqrt()
        d1 = (torch.log(s / k) + (r - q) * t) / srt + srt / 2
        return d1, d1 - srt

    @staticmethod
    def forward(ctx, s, k, vol, t, r, q, phi):
        d1, d2 = _BS.d12(s, k, vol, t, r, q)
        ctx.save_for_backward(s, k, vol, t, r)
        ctx.q, ctx.phi = q, phi
        N = torch.special.ndtr
        return phi * (s * torch.exp(-q * t) * N(phi * d1) - k * torch.exp(-r * t) * N(phi * d2))

    @staticmethod
    def backward(ctx, g):
        s, k, vol, t, r = ctx.saved_tensors
        q, phi = ctx.q, ctx.phi
        d1, d2 = _BS.d12(s, k, vol, t, r, q)
        df_q, df_r = torch.exp(-q * t), torch.exp(-r * t)
        n1, n2 = torch.special.ndtr(phi * d1), torch.special.ndtr(phi * d2)
        delta = phi * df_q * n1
        dual = -phi * df_r * n2
        vega = s * df_q * _npdf(d1) * t.sqrt()
        theta = s * df_q * _npdf(d1) * vol / (2 * t.sqrt()) - phi * q * s * df_q * n1 + phi * r * k * df_r * n2
        rho = k * t * df_r * n2
        return g * delta, g * dual, g * vega, g * theta, g * rho, None, None


def black_scholes(spot, strike, vol, t, rate, dividend=0.0, option="call"):
    """Premium of a European option; tensors broadcast."""
    phi = {"call": 1.0, "put": -1.0}[option]
    spot, strike, vol, t, rate = torch.broadcast_tensors(spot, strike, vol, t, rate)
    return _BS.apply(spot, strike, vol, t, rate, dividend, phi)
