from typing import Optional

import torch
from torch import Tensor


class _BlackLitterman(torch.autograd.Function):
    @staticmethod
    def forward(ctx, prior, cov, picks, views, uncertainty, tau):
        scaled = tau * cov
        middle = picks @ scaled @ picks.t() + torch.diag(uncertainty)
        ctx.save_for_backward(prior, cov, picks, views, uncertainty)
        ctx.tau = tau
        return prior + scaled @ picks.t() @ torch.linalg.solve(middle, views - picks @ prior)

    @staticmethod
    def backward(ctx, grad):
        prior, cov, picks, views, uncertainty = ctx.saved_tensors
        scaled = ctx.tau * cov
        middle = picks @ scaled @ picks.t() + torch.diag(uncertainty)
        y = torch.linalg.solve(middle, views - picks @ prior)
        pulled = scaled.t() @ grad
        h = torch.linalg.solve(middle.t(), picks @ pulled)
        grad_prior = grad - picks.t() @ h
        tilt = picks.t() @ y
        grad_cov = ctx.tau * torch.outer(grad_prior, tilt)
        grad_picks = torch.outer(y, pulled) - torch.outer(h, prior + scaled @ tilt)
        grad_picks = grad_picks - torch.outer(y, scaled.t() @ (picks.t() @ h))
        return grad_prior, grad_cov, grad_picks, h, -h * y, None


def black_litterman(prior: Tensor, cov: Tensor, picks: Tensor, views: Tensor, uncertainty: Optional[Tensor] = None, tau: float = 0.05) -> Tensor:
    """Posterior mean returns of Black and Litterman.

    Args:
        prior: (N,) equilibrium returns.
        cov: (N, N) covariance.
        picks: (K, N) view portfolios.
        views: (K,) their expected returns.
        uncertainty: (K,) variances of the views; by default tau times the portfolios' variances, as a constant.
        tau: scale of the prior's covariance.
    """
    if picks.shape != (views.numel(), prior.numel()):
        raise ValueError("picks must be (views, assets)")
    if uncertainty is None:
        uncertainty = tau * ((picks @ cov) * picks).sum(1).detach()
    return _BlackLitterman.apply(prior, cov, picks, views, uncertainty, tau)
