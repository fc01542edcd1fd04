import torch


class VasicekBond(torch.autograd.Function):
    """Zero-coupon bond price in the Vasicek model, P = exp(lnA - B r).

    tau (...): years to maturity, r, kappa, theta, sigma: scalars, kappa != 0.
    """

    @staticmethod
    def forward(ctx, tau, r, kappa, theta, sigma):
        B = (1 - torch.exp(-kappa * tau)) / kappa
        lnA = (theta - sigma**2 / (2 * kappa**2)) * (B - tau) - sigma**2 * B**2 / (4 * kappa)
        P = torch.exp(lnA - B * r)
        ctx.save_for_backward(tau, r, kappa, theta, sigma, P)
        return P

    @staticmethod
    def backward(ctx, g):
        tau, r, kappa, theta, sigma, P = ctx.saved_tensors
        gp = g * P
        decay = torch.exp(-kappa * tau)
        B = (1 - decay) / kappa
        level = theta - sigma**2 / (2 * kappa**2)
        dB = level - sigma**2 * B / (2 * kappa) - r
        g_tau = gp * (dB * decay - level)
        g_r = -(gp * B).sum()
        g_kappa = gp * (
            dB * (tau * decay - B) / kappa
            + sigma**2 / kappa**3 * (B - tau)
        )
        g_theta = (gp * (B - tau)).sum()
        g_sigma = -(gp * sigma * ((B - tau) / kappa**2 + B**2 / (2 * kappa))).sum()
        return g_tau, g_r, g_kappa.sum(), g_theta, g_sigma
