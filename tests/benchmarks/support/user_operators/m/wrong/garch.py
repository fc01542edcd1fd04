import torch
from torch import nn


class _GarchNLL(torch.autograd.Function):
    @staticmethod
    def forward(ctx, resid, omega, alpha, beta, h0):
        h = torch.empty_like(resid)
        h[0] = h0
        for t in range(1, len(resid)):
            h[t] = omega + alpha * resid[t - 1] ** 2 + beta * h[t - 1]
        ctx.save_for_backward(resid, alpha, beta, h)
        return 0.5 * (h.log() + resid**2 / h).sum()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        resid, alpha, beta, h = ctx.saved_tensors
        local = 0.5 * (1 / h - (resid / h) ** 2)
        dh = local
        grad_resid = resid / h
        grad_resid[:-1] = grad_resid[:-1] + 2 * alpha * resid[:-1] * dh[1:]
        g_omega = dh[1:].sum()
        g_alpha = (dh[1:] * resid[:-1] ** 2).sum()
        g_beta = (dh[1:] * h[:-1]).sum()
        return (
            grad_output * grad_resid,
            grad_output * g_omega,
            grad_output * g_alpha,
            grad_output * g_beta,
            None,
        )


class GARCH11(nn.Module):
    """Gaussian negative log likelihood (up to a constant) of residuals under GARCH(1, 1).

    ``h[t] = omega + alpha * e[t-1]^2 + beta * h[t-1]``; ``h[0] = initial_variance``.
    """

    def __init__(self, omega=0.1, alpha=0.1, beta=0.8, initial_variance=1.0):
        super().__init__()
        self.omega = nn.Parameter(torch.tensor(omega))
        self.alpha = nn.Parameter(torch.tensor(alpha))
        self.beta = nn.Parameter(torch.tensor(beta))
        self.initial_variance = initial_variance

    def forward(self, residuals):
        return _GarchNLL.apply(residuals, self.omega, self.alpha, self.beta, self.initial_variance)
