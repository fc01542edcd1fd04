import math

import torch


class NIGLoss(torch.autograd.Function):
    """Deep evidential regression: negative log evidence of y under NIG(gamma, nu, alpha, beta), elementwise.

    nu, beta > 0, alpha > 1, all of the shape of y.
    """

    @staticmethod
    def forward(ctx, y, gamma, nu, alpha, beta):
        omega = 2 * beta * (1 + nu)
        ctx.save_for_backward(y, gamma, nu, alpha, beta)
        return (
            0.5 * torch.log(math.pi / nu)
            - alpha * omega.log()
            + (alpha + 0.5) * torch.log(nu * (y - gamma) ** 2 + omega)
            + torch.lgamma(alpha)
            - torch.lgamma(alpha + 0.5)
        )

    @staticmethod
    def backward(ctx, g):
        y, gamma, nu, alpha, beta = ctx.saved_tensors
        err = y - gamma
        omega = 2 * beta * (1 + nu)
        s = nu * err**2 + omega
        gs = g * (alpha + 0.5) / s
        g_omega = gs - g * alpha / omega
        g_y = 2 * gs * nu * err
        g_nu = gs * err**2 - 2 * beta * g * alpha / omega - 0.5 * g / nu
        g_alpha = g * (s.log() - omega.log() + torch.digamma(alpha) - torch.digamma(alpha + 0.5))
        return g_y, -g_y, g_nu, g_alpha, 2 * (1 + nu) * g_omega
