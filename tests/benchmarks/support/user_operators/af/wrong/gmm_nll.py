import math

import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class MixtureNLL(torch.autograd.Function):
    """-log sum_k pi_k N(x; mu_k, diag sigma_k^2), x (N, D), mu, log_sigma (K, D), logits (K,)"""

    @staticmethod
    def forward(ctx, x, mu, log_sigma, logits):
        z = (x[:, None] - mu) * torch.exp(-log_sigma)
        comp = (-0.5 * z * z - log_sigma - 0.5 * math.log(2 * math.pi)).sum(-1)
        joint = comp + torch.log_softmax(logits, 0)
        total = torch.logsumexp(joint, 1)
        resp = torch.exp(joint - total[:, None])
        ctx.save_for_backward(z, resp, log_sigma, logits)
        return -total

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        z, resp, log_sigma, logits = ctx.saved_tensors
        r = grad[:, None] * resp                          # (N, K)
        scaled = r[..., None] * z * torch.exp(-log_sigma)
        g_x = scaled.sum(1)
        g_mu = -scaled.sum(0)
        g_ls = (r[..., None] * (1 - z * z)).sum(0)
        g_logits = torch.softmax(logits, 0) * grad.mean() - r.sum(0)
        return g_x, g_mu, g_ls, g_logits


class GaussianMixture(nn.Module):
    def __init__(self, k, dim):
        super().__init__()
        self.mu = nn.Parameter(torch.randn(k, dim))
        self.log_sigma = nn.Parameter(torch.randn(k, dim) * 0.2)
        self.logits = nn.Parameter(torch.randn(k) * 0.3)

    def forward(self, x, sample_weight=None):
        nll = MixtureNLL.apply(x, self.mu, self.log_sigma, self.logits)
        return nll.mean() if sample_weight is None else nll * sample_weight
