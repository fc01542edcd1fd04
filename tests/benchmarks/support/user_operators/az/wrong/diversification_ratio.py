import torch
from torch.autograd import Function


class DiversificationRatio(Function):
    """Weighted average volatility over the volatility of the portfolio.

    weights: (..., N); cov: (N, N), positive definite. Returns (...).
    """

    @staticmethod
    def forward(ctx, weights, cov):
        if cov.shape != (weights.size(-1),) * 2:
            raise ValueError("cov must be square, one row per asset")
        vol = cov.diagonal().sqrt()
        portfolio_vol = ((weights @ cov) * weights).sum(-1).sqrt()
        ctx.save_for_backward(weights, cov, portfolio_vol)
        return (weights * vol).sum(-1) / portfolio_vol

    @staticmethod
    def backward(ctx, grad):
        weights, cov, portfolio_vol = ctx.saved_tensors
        vol = cov.diagonal().sqrt()
        average = (weights * vol).sum(-1)
        grad_average = (grad / portfolio_vol)[..., None]
        grad_variance = (-grad * average / (2 * portfolio_vol**3))[..., None]
        grad_weights = grad_average * vol + grad_variance * (weights @ (cov + cov.t()))
        assets = cov.size(0)
        grad_vol = (grad_average * weights).reshape(-1, assets).sum(0)
        outer = (grad_variance * weights).reshape(-1, assets).t() @ weights.reshape(-1, assets)
        return grad_weights, outer + torch.diag(grad_vol / (2 * vol))
