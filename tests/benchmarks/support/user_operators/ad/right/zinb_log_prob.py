import torch
import torch.nn.functional as F


class LogZINB(torch.autograd.Function):
    """Zero-inflated negative binomial log likelihood of UMI counts.

    x, mu, dropout_logits: cells x genes; theta: genes (inverse dispersion, shared by all cells)
    """

    @staticmethod
    def forward(ctx, x, mu, theta, dropout_logits):
        lt = torch.log(theta) - torch.log(theta + mu)
        nb = (theta * lt + torch.xlogy(x, mu) - x * torch.log(theta + mu)
              + torch.lgamma(x + theta) - torch.lgamma(theta) - torch.lgamma(x + 1))
        zero = x == 0
        log_drop = F.logsigmoid(dropout_logits)
        log_keep = F.logsigmoid(-dropout_logits)
        ll_zero = torch.logaddexp(log_drop, log_keep + theta * lt)
        out = torch.where(zero, ll_zero, log_keep + nb)
        # share of the negative binomial in the likelihood
        resp = torch.where(zero, torch.exp(log_keep + theta * lt - ll_zero), torch.ones_like(out))
        ctx.save_for_backward(x, mu, theta, dropout_logits, lt, resp)
        return out

    @staticmethod
    def backward(ctx, g):
        x, mu, theta, logits, lt, resp = ctx.saved_tensors
        gr = g * resp
        ratio = (x + theta) / (theta + mu)
        g_mu = gr * (x / mu - ratio)
        d_theta = torch.digamma(x + theta) - torch.digamma(theta) + lt + 1 - ratio
        g_theta = (gr * d_theta).sum(0)
        g_logits = g * (1 - resp - torch.sigmoid(logits))
        return None, g_mu, g_theta, g_logits
