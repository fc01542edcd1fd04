import torch
import torch.nn.functional as F


class ZINBLogLik(torch.autograd.Function):
    """Log-likelihood of counts under a zero-inflated negative binomial.

    x counts (no gradient); mu > 0 mean; theta > 0 inverse dispersion; logit of the inflation. Same shapes.
    """

    @staticmethod
    def forward(ctx, x, mu, theta, logit):
        ctx.save_for_backward(x, mu, theta, logit)
        share = torch.log(theta) - torch.log(theta + mu)
        zero = F.softplus(theta * share - logit) - F.softplus(-logit)
        some = (
            -F.softplus(-logit) - logit + theta * share
            + x * (torch.log(mu) - torch.log(theta + mu))
            + torch.lgamma(x + theta) - torch.lgamma(theta) - torch.lgamma(x + 1)
        )
        return torch.where(x == 0, zero, some)

    @staticmethod
    def backward(ctx, g):
        x, mu, theta, logit = ctx.saved_tensors
        is_zero = x == 0
        total = theta + mu
        share = torch.log(theta) - torch.log(total)
        s = torch.where(is_zero, torch.sigmoid(theta * share - logit), torch.ones_like(mu))
        g_mu = g_theta = g_logit = None
        if ctx.needs_input_grad[1]:
            g_mu = g * (x / mu - x / total - s * theta / total)
        if ctx.needs_input_grad[2]:
            extra = torch.digamma(x + theta) - torch.digamma(theta) - x / total
            extra = torch.where(is_zero, torch.zeros_like(extra), extra)
            g_theta = g * (s * (share + 1 - theta / total) + extra)
        if ctx.needs_input_grad[3]:
            g_logit = g * (torch.sigmoid(-logit) - s)
        return None, g_mu, g_theta, g_logit
