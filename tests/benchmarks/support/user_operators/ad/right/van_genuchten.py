import torch


class VanGenuchten(torch.autograd.Function):
    """Soil water retention curve theta(h).

    h        (B, L) pressure head, negative when unsaturated; theta_s for h >= 0
    alpha, n (L,)   shape parameters of each soil layer, n > 1
    theta_r, theta_s (L,) residual and saturated water content
    """

    @staticmethod
    def forward(ctx, h, alpha, n, theta_r, theta_s):
        psi = (-h).clamp(min=0)
        u = (alpha * psi) ** n
        m = 1 - 1 / n
        se = (1 + u) ** (-m)
        ctx.save_for_backward(h, alpha, n, theta_r, theta_s, psi, u, se)
        return theta_r + (theta_s - theta_r) * se

    @staticmethod
    def backward(ctx, grad):
        h, alpha, n, theta_r, theta_s, psi, u, se = ctx.saved_tensors
        m = 1 - 1 / n
        dse = grad * (theta_s - theta_r)
        dse_du = -m * se / (1 + u)
        wet = psi <= 0
        lpsi = torch.log(alpha * torch.where(wet, torch.ones_like(psi), psi))
        g_psi = dse * dse_du * n * alpha * (alpha * psi) ** (n - 1)
        g_h = torch.where(wet, torch.zeros_like(psi), -g_psi)
        g_alpha = (dse * dse_du * n * u / alpha).sum(0)
        g_n = (dse * (dse_du * u * lpsi - se * torch.log1p(u) / n ** 2)).sum(0)
        g_r = (grad * (1 - se)).sum(0)
        g_s = (grad * se).sum(0)
        return g_h, g_alpha, g_n, g_r, g_s
