import torch


class GammaFrailtyLL(torch.autograd.Function):
    """Marginal log likelihood per cluster, gamma frailty of mean 1 and variance theta.

    log_h, H, event, cluster: (N,); theta: () > 0; n: number of clusters
    """

    @staticmethod
    def _sums(H, event, cluster, n):
        D = H.new_zeros(n).index_add(0, cluster, event.to(H.dtype))
        S = H.new_zeros(n).index_add(0, cluster, H)
        return D, S

    @staticmethod
    def forward(ctx, log_h, H, theta, event, cluster, n):
        D, S = GammaFrailtyLL._sums(H, event, cluster, n)
        k = 1 / theta
        ctx.save_for_backward(log_h, H, theta, event, cluster)
        ctx.n = n
        ll = log_h.new_zeros(n).index_add(0, cluster, log_h * event)
        return ll + torch.lgamma(k + D) - torch.lgamma(k) + D * theta.log() - (k + D) * torch.log1p(theta * S)

    @staticmethod
    def backward(ctx, g):
        log_h, H, theta, event, cluster = ctx.saved_tensors
        D, S = GammaFrailtyLL._sums(H, event, cluster, ctx.n)
        k = 1 / theta
        gl = g[cluster] * event
        gH = -(g * (1 + theta * D) / (1 + theta * S))[cluster]
        dth = k ** 2 * (torch.digamma(k) - torch.digamma(k + D) + torch.log1p(theta * S))
        dth = dth + D / theta - (k + D) * S / (1 + theta * S)
        return gl, gH, (g * dth).sum(), None, None, None
