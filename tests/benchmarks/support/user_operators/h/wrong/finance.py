"""Pricing, risk and allocation layers."""

import math

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def _ncdf(x):
    return 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))


def _npdf(x):
    return torch.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


def _d1(spot, strike, vol, tau, rate):
    total = vol * math.sqrt(tau)
    return (torch.log(spot / strike) + rate * tau) / total + 0.5 * total


class BlackScholesPrice(Function):
    """European option; spot, strike and vol broadcast against each other."""

    @staticmethod
    def forward(ctx, spot, strike, vol, tau: float, rate: float = 0.0, is_call=True):
        sgn = 1.0 if is_call else -1.0
        d1 = _d1(spot, strike, vol, tau, rate)
        d2 = d1 - vol * math.sqrt(tau)
        ctx.save_for_backward(spot, strike, vol)
        ctx.tau, ctx.rate, ctx.sgn = tau, rate, sgn
        df = math.exp(-rate * tau)
        return sgn * (spot * _ncdf(sgn * d1) - strike * df * _ncdf(sgn * d2))

    @staticmethod
    def backward(ctx, grad):
        spot, strike, vol = ctx.saved_tensors
        sgn, root = ctx.sgn, math.sqrt(ctx.tau)
        d1 = _d1(spot, strike, vol, ctx.tau, ctx.rate)
        delta = _ncdf(d1)
        df = math.exp(-ctx.rate * ctx.tau)
        dual = -sgn * df * _ncdf(sgn * (d1 - vol * root))
        vega = spot * _npdf(d1) * root
        return (
            (grad * delta).sum_to_size(spot.shape),
            (grad * dual).sum_to_size(strike.shape),
            (grad * vega).sum_to_size(vol.shape),
            None,
            None,
            None,
        )


class ExpectedShortfall(Function):
    """Mean loss (positive = money lost) in the worst scenarios of each book.

    pnl is (scenarios, books); level is the confidence, e.g. 0.975.
    """

    @staticmethod
    def forward(ctx, pnl, level=0.95):
        if not 0.0 < level < 1.0:
            raise ValueError("level must lie between 0 and 1")
        k = max(1, math.ceil(round((1.0 - level) * pnl.size(0), 9)))
        losses, idx = torch.topk(-pnl, k, dim=0)
        ctx.save_for_backward(idx)
        ctx.n_scenarios = pnl.size(0)
        return losses.mean(dim=0)

    @staticmethod
    def backward(ctx, grad_es):
        (idx,) = ctx.saved_tensors
        k, books = idx.shape
        share = (grad_es / k).expand(k, books)
        grad = grad_es.new_zeros(ctx.n_scenarios, books).scatter(0, idx, share)
        return grad, None


class ZeroCurveDiscount(Function):
    """Discount factors from zero rates, linear between the knots and flat outside."""

    @staticmethod
    def forward(ctx, rates, knots, times):
        if ctx.needs_input_grad[1] or ctx.needs_input_grad[2]:
            raise ValueError("knots and times are fixed")
        hi = torch.searchsorted(knots, times).clamp(1, knots.numel() - 1)
        lo = hi - 1
        w = ((times - knots[lo]) / (knots[hi] - knots[lo])).clamp(0.0, 1.0)
        r = (1.0 - w) * rates[lo] + w * rates[hi]
        df = torch.exp(-r * times)
        ctx.save_for_backward(knots, times, df)
        return df

    @staticmethod
    def backward(ctx, grad_df):
        knots, times, df = ctx.saved_tensors
        hi = torch.searchsorted(knots, times).clamp(1, knots.numel() - 1)
        lo = hi - 1
        w = (times - knots[lo]) / (knots[hi] - knots[lo])
        g = -times * df * grad_df
        grad_rates = grad_df.new_zeros(knots.shape)
        grad_rates = grad_rates.index_add(0, lo, (1.0 - w) * g)
        grad_rates = grad_rates.index_add(0, hi, w * g)
        return grad_rates, None, None


def _loaded(cov: torch.Tensor, ridge: float) -> torch.Tensor:
    eye = torch.eye(cov.size(-1), dtype=cov.dtype, device=cov.device)
    return cov + ridge * eye


class MinVarianceWeights(Function):
    """Fully invested minimum-variance portfolio of (cov + ridge I)."""

    @staticmethod
    def forward(ctx, cov: torch.Tensor, ridge: float = 1e-8) -> torch.Tensor:
        ones = cov.new_ones(cov.size(-1))
        z = torch.linalg.solve(_loaded(cov, ridge), ones)
        ctx.save_for_backward(cov)
        ctx.ridge = ridge
        return z / z.sum()

    @staticmethod
    def backward(ctx, grad_w):
        (cov,) = ctx.saved_tensors
        ones = cov.new_ones(cov.size(-1))
        z = torch.linalg.solve(_loaded(cov, ctx.ridge), ones)
        s = z.sum()
        grad_z = (grad_w - (grad_w * z).sum() / s) / s
        adj = torch.linalg.solve(cov.mT, grad_z)
        return -torch.outer(adj, z), None


class EwmaVariance(Function):
    """RiskMetrics recursion v[t] = lam v[t-1] + (1 - lam) r[t]^2, started at init."""

    @staticmethod
    def forward(ctx, returns, lam, init):
        if lam.dim() != 0:
            raise ValueError("lam must be a scalar tensor")
        v, path = init, []
        for r in returns:
            v = lam * v + (1 - lam) * r * r
            path.append(v)
        out = torch.stack(path)
        ctx.save_for_backward(returns, lam, init, out)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        returns, lam, init, out = ctx.saved_tensors
        carry = torch.zeros_like(init)
        grad_lam = torch.zeros_like(lam)
        rows = []
        for t in range(returns.size(0) - 1, -1, -1):
            carry = carry + grad_out[t]
            prev = out[t] if t > 0 else init
            grad_lam = grad_lam + (carry * (prev - returns[t] ** 2)).sum()
            rows.append(carry * (1 - lam) * 2 * returns[t])
            carry = carry * lam
        return torch.stack(rows[::-1]), grad_lam, carry


class SharpeRatio(Function):
    @staticmethod
    def forward(ctx, returns, risk_free=0.0, periods=252, unbiased=True):
        """Annualised ratio per column of (T, portfolios)."""
        ctx.save_for_backward(returns)
        ctx.risk_free, ctx.periods, ctx.unbiased = risk_free, periods, unbiased
        sd = returns.std(dim=0, unbiased=unbiased)
        return math.sqrt(periods) * (returns.mean(dim=0) - risk_free) / sd

    @staticmethod
    def backward(ctx, grad):
        (returns,) = ctx.saved_tensors
        n = returns.size(0)
        mu = returns.mean(dim=0)
        sd = returns.std(dim=0, unbiased=ctx.unbiased)
        dof = n
        slope = 1.0 / (n * sd) - (mu - ctx.risk_free) * (returns - mu) / (dof * sd**3)
        return grad * math.sqrt(ctx.periods) * slope, None, None, None


class BondPrice(Function):
    """Present value of cashflows (bonds, dates) at one yield per bond."""

    @staticmethod
    def forward(yields, cashflows, times, freq=2):
        base = 1.0 + yields.unsqueeze(1) / freq
        return (cashflows * base.pow(-freq * times)).sum(dim=1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        yields, cashflows, times, ctx.freq = inputs
        ctx.save_for_backward(yields, cashflows, times)

    @staticmethod
    def backward(ctx, grad_price):
        yields, cashflows, times = ctx.saved_tensors
        base = 1.0 + yields.unsqueeze(1) / ctx.freq
        disc = base.pow(-ctx.freq * times)
        grad_y = grad_cf = None
        if ctx.needs_input_grad[0]:
            duration = (times * cashflows * disc).sum(dim=1)
            grad_y = -grad_price * duration
        if ctx.needs_input_grad[1]:
            grad_cf = grad_price.unsqueeze(1) * disc
        return grad_y, grad_cf, None, None


def bond_price(yields, cashflows, times, freq=2):
    if times.requires_grad:
        raise ValueError("payment dates are not differentiable")
    return BondPrice.apply(yields, cashflows, times, freq)


class ImpliedVolatility(Function):
    """Volatility of an undiscounted call by bisection; gradients by the implicit theorem.

    price and spot are (N,) tensors; strike and tau are floats.
    """

    @staticmethod
    def forward(ctx, price, spot, strike, tau):
        lo = torch.full_like(price, 1e-4)
        hi = torch.full_like(price, 4.0)
        for _ in range(70):
            mid = 0.5 * (lo + hi)
            d1 = _d1(spot, strike, mid, tau, 0.0)
            model = spot * _ncdf(d1) - strike * _ncdf(d1 - mid * math.sqrt(tau))
            low = model < price
            lo, hi = torch.where(low, mid, lo), torch.where(low, hi, mid)
        vol = 0.5 * (lo + hi)
        ctx.save_for_backward(spot, vol)
        ctx.strike, ctx.tau = strike, tau
        return vol

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        spot, vol = ctx.saved_tensors
        d1 = _d1(spot, ctx.strike, vol, ctx.tau, 0.0)
        vega = spot * _npdf(d1) * math.sqrt(ctx.tau)
        grad_price = g / vega
        grad_spot = -_ncdf(d1) / vega
        return grad_price, grad_spot, None, None


class MaxDrawdown(Function):
    """Largest relative fall from a running peak, for each row of positive prices."""

    @staticmethod
    def forward(ctx, paths):
        peaks, where = paths.cummax(dim=1)
        fall, trough = (1.0 - paths / peaks).max(dim=1, keepdim=True)
        peak = where.gather(1, trough)
        ctx.save_for_backward(paths, peak, trough)
        return fall.squeeze(1)

    @staticmethod
    def backward(ctx, grad_dd):
        paths, peak, trough = ctx.saved_tensors
        g = grad_dd.unsqueeze(1)
        top, low = paths.gather(1, peak), paths.gather(1, trough)
        grad = torch.zeros_like(paths)
        grad = grad.scatter_add(1, peak, g * low / top**2)
        grad = grad.scatter(1, trough, -g / top)
        return grad


class LongOnlyProjection(Function):
    """Euclidean projection of every row of raw scores onto the simplex of weights."""

    @staticmethod
    def forward(ctx, raw):
        srt = raw.sort(dim=-1, descending=True).values
        excess = srt.cumsum(-1) - 1.0
        ranks = torch.arange(1, raw.size(-1) + 1, dtype=raw.dtype, device=raw.device)
        count = (srt * ranks > excess).sum(-1, keepdim=True)
        theta = excess.gather(-1, count - 1) / count
        weights = (raw - theta).clamp(min=0.0)
        ctx.save_for_backward(weights > 0)
        return weights

    @staticmethod
    def backward(ctx, grad_w):
        (held,) = ctx.saved_tensors
        held = held.to(grad_w.dtype)
        n_held = held.sum(-1, keepdim=True)
        centre = grad_w.sum(-1, keepdim=True) / n_held
        return held * (grad_w - centre)
