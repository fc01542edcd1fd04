import math

import torch


class CIRBond(torch.autograd.Function):
    @staticmethod
    def _ab(tau, kappa, sigma):
        gamma = math.sqrt(kappa ** 2 + 2 * sigma ** 2)
        e = torch.expm1(gamma * tau)
        den = (gamma + kappa) * e + 2 * gamma
        b = 2 * e / den
        log_a = 2 * kappa / sigma ** 2 * (math.log(2 * gamma) + (kappa + gamma) * tau / 2 - den.log())
        return log_a, b

    @staticmethod
    def forward(ctx, r, theta, tau, kappa, sigma):
        log_a, b = CIRBond._ab(tau, kappa, sigma)
        p = torch.exp(theta * log_a - b * r)
        ctx.save_for_backward(r, theta, tau, p)
        ctx.kappa, ctx.sigma = kappa, sigma
        return p

    @staticmethod
    def backward(ctx, grad):
        r, theta, tau, p = ctx.saved_tensors
        kappa, sigma = ctx.kappa, ctx.sigma
        log_a, b = CIRBond._ab(tau, kappa, sigma)
        gp = grad * p
        gr = (-b * gp).sum_to_size(r.shape)
        gtheta = (log_a * gp).sum_to_size(theta.shape)
        db = 1 - kappa * b - 0.5 * sigma ** 2 * b ** 2
        gtau = (gp * (-kappa * theta * b - db * r)).sum_to_size(tau.shape)
        return gr, gtheta, gtau, None, None


def cir_bond(r, theta, tau, kappa=0.8, sigma=0.2):
    """Zero-coupon price under Cox-Ingersoll-Ross. r, theta, tau broadcast; theta is the long-run mean."""
    return CIRBond.apply(r, theta, tau, kappa, sigma)
