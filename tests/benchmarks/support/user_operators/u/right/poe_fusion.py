import torch


class ProductOfExperts(torch.autograd.Function):
    """Product of Gaussian experts and a standard normal prior (MVAE).

    apply(n, mu_1, ..., mu_n, logvar_1, ..., logvar_n) -> (mu, logvar), all of one shape.
    """

    @staticmethod
    def forward(ctx, n, *tensors):
        mus, logvars = tensors[:n], tensors[n:]
        precs = [torch.exp(-lv) for lv in logvars]
        total = 1 + sum(precs)
        ctx.n = n
        ctx.save_for_backward(*tensors)
        return sum(p * m for p, m in zip(precs, mus)) / total, -total.log()

    @staticmethod
    def backward(ctx, g_mu, g_lv):
        n = ctx.n
        mus, logvars = ctx.saved_tensors[:n], ctx.saved_tensors[n:]
        precs = [torch.exp(-lv) for lv in logvars]
        total = 1 + sum(precs)
        joint = sum(p * m for p, m in zip(precs, mus)) / total
        mu_grads, lv_grads = [], []
        for m, p in zip(mus, precs):
            share = p / total
            mu_grads.append(g_mu * share)
            lv_grads.append(share * (g_lv - g_mu * (m - joint)))
        return None, *mu_grads, *lv_grads
