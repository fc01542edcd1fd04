import torch


class NegBinNLL(torch.autograd.Function):
    """NLL of counts under NB(mean mu, dispersion theta = exp(log_theta)); used for scRNA counts.
    mu (cells, genes), log_theta (genes,), y (cells, genes) -> (cells, genes)"""

    @staticmethod
    def forward(ctx, mu, log_theta, y):
        ctx.save_for_backward(mu, log_theta, y)
        th = log_theta.exp()
        ll = torch.lgamma(y + th) - torch.lgamma(th) - torch.lgamma(y + 1)
        ll = ll + th * (log_theta - torch.log(th + mu)) + y * (torch.log(mu) - torch.log(th + mu))
        return -ll

    @staticmethod
    def backward(ctx, g):
        mu, log_theta, y = ctx.saved_tensors
        th = log_theta.exp()
        s = th + mu
        gmu = -g * (y / mu - (y + th) / s)
        dth = torch.digamma(y + th) - torch.digamma(th) + log_theta - torch.log(s) + 1 - (y + th) / s
        gth = -(g * dth).sum(0)
        return gmu, gth, None
