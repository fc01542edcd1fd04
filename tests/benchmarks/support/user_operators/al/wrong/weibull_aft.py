"""Accelerated failure time regression with Weibull errors and right censoring."""
import torch
from torch import nn


class _WeibullNLL(torch.autograd.Function):
    @staticmethod
    def forward(ctx, eta, log_k, log_t, event):
        ctx.save_for_backward(eta, log_k, log_t, event)
        z = (log_t - eta) * log_k.exp()
        return (z.exp() - event * (log_k + z - log_t)).mean()

    @staticmethod
    def backward(ctx, grad):
        eta, log_k, log_t, event = ctx.saved_tensors
        k = log_k.exp()
        z = (log_t - eta) * k
        resid = event - z.exp().type_as(event)
        g = grad / eta.numel()
        d_eta = g * k * resid
        d_log_k = -g * (event + resid * z).sum()
        return d_eta, d_log_k, None, None


class WeibullAFT(nn.Module):
    """Negative log likelihood of durations.

    Shapes:
        x: (N, P) covariates
        duration: (N,) positive
        event: (N,) long, 1 where the failure was seen and 0 where censored
    """

    def __init__(self, n_features):
        super().__init__()
        self.beta = nn.Parameter(torch.zeros(n_features))
        self.intercept = nn.Parameter(torch.zeros(()))
        self.log_k = nn.Parameter(torch.zeros(()))

    def forward(self, x, duration, event):
        return _WeibullNLL.apply(x @ self.beta + self.intercept, self.log_k, duration.log(), event)
