import math

import torch


class HardConcreteGate(torch.autograd.Function):
    """L0 gates (Louizos et al. 2018).

    Takes log_alpha and uniform noise u of the same shape; gives the gates and the probability that they are open.
    u=None is for evaluation: the gate is then the clipped mean.
    """

    @staticmethod
    def forward(ctx, log_alpha, u=None, beta=2 / 3, gamma=-0.1, zeta=1.1):
        if u is None:
            s = torch.sigmoid(log_alpha)
        else:
            s = torch.sigmoid((torch.log(u) - torch.log1p(-u) + log_alpha) / beta)
        gate = (s * (zeta - gamma) + gamma).clamp(0, 1)
        p_open = torch.sigmoid(log_alpha - beta * math.log(-gamma / zeta))
        ctx.save_for_backward(log_alpha, u)
        ctx.conf = beta, gamma, zeta
        return gate, p_open

    @staticmethod
    def backward(ctx, g_gate, g_open):
        log_alpha, u = ctx.saved_tensors
        beta, gamma, zeta = ctx.conf
        if u is None:
            s, inv_temp = torch.sigmoid(log_alpha), 1.0
        else:
            s, inv_temp = torch.sigmoid((torch.log(u) - torch.log1p(-u) + log_alpha) / beta), 1 / beta
        stretched = s * (zeta - gamma) + gamma
        live = (stretched > 0) & (stretched < 1)
        g = g_gate * live * s * (1 - s) * inv_temp
        p = torch.sigmoid(log_alpha - beta * math.log(-gamma / zeta))
        return g + g_open * p * (1 - p), None, None, None, None
