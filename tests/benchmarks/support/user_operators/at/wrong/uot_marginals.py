import torch


class MarginalPenalty(torch.autograd.Function):
    # rho1 KL(P 1 | a) + rho2 KL(P^T 1 | b),  KL(r | a) = sum r log(r / a) - r + a
    @staticmethod
    def forward(ctx, P, a, b, rho1=1.0, rho2=None):
        rho2 = rho1 if rho2 is None else rho2
        ctx.rho1, ctx.rho2 = rho1, rho2
        ctx.save_for_backward(P, a, b)
        r, c = P.sum(-1), P.sum(-2)
        kl1 = (r * torch.log(r / a) - r + a).sum(-1)
        kl2 = (c * torch.log(c / b) - c + b).sum(-1)
        return rho1 * kl1 + rho2 * kl2

    @staticmethod
    def backward(ctx, grad_output):
        P, a, b = ctx.saved_tensors
        rho1, rho2 = ctx.rho1, ctx.rho2
        g = grad_output.unsqueeze(-1)
        r, c = P.sum(-1), P.sum(-2)
        grad_P = rho1 * (g * torch.log(r / a)).unsqueeze(-1) + rho2 * (g * torch.log(c / b)).unsqueeze(-2)
        grad_a = rho1 * g * (1 - r / a)
        grad_b = rho1 * g * (1 - c / b)
        return grad_P, grad_a, grad_b, None, None
