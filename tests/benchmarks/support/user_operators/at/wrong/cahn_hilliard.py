import torch


def lap(c):
    return c.roll(1, -1) + c.roll(-1, -1) + c.roll(1, -2) + c.roll(-1, -2) - 4 * c


class CahnHilliardStep(torch.autograd.Function):
    # explicit step on a periodic grid, c: (..., H, W), kappa: scalar tensor

    @staticmethod
    def forward(ctx, c, kappa, dt=1e-2, mobility=1.0):
        ctx.save_for_backward(c, kappa)
        ctx.rate = dt * mobility
        mu = c ** 3 - c - kappa * lap(c)
        return c + ctx.rate * lap(mu)

    @staticmethod
    def backward(ctx, grad_output):
        c, kappa = ctx.saved_tensors
        grad_mu = ctx.rate * lap(grad_output)
        grad_kappa = -(grad_mu * lap(c)).sum()
        grad_c = grad_output
        grad_c += grad_mu * (3 * c ** 2 - 1) - kappa * lap(grad_mu)
        return grad_c, grad_kappa, None, None
