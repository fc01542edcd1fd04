import torch


class MPPIUpdate(torch.autograd.Function):
    # costs [K], noise [K, T, nu], lam scalar tensor (inverse temperature is 1 / lam)
    # -> control correction [T, nu], weights [K]

    @staticmethod
    def forward(ctx, costs, noise, lam):
        w = torch.softmax(-(costs - costs.min()) / lam, dim=0)
        du = torch.einsum("k,ktu->tu", w, noise)
        ctx.save_for_backward(costs, noise, lam)
        return du, w

    @staticmethod
    def backward(ctx, g_du, g_w):
        costs, noise, lam = ctx.saved_tensors
        w = torch.softmax(-costs / lam, dim=0)
        g = g_w + torch.einsum("tu,ktu->k", g_du, noise)
        g_logit = w * (g - (w * g).sum())
        g_costs = -g_logit / lam
        g_lam = (g_logit * costs).sum() / lam ** 2
        g_noise = w[:, None, None] * g_du
        return g_costs, g_noise, g_lam
