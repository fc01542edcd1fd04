import torch


class NeoHookean(torch.autograd.Function):
    # W = mu/2 (tr F^T F - 3 - 2 ln J) + lam/2 (ln J)^2, det F > 0
    @staticmethod
    def forward(ctx, F, mu, lam):
        ctx.save_for_backward(F, mu, lam)
        lj = torch.linalg.det(F).log()
        return mu / 2 * ((F * F).sum((-2, -1)) - 3 - 2 * lj) + lam / 2 * lj ** 2

    @staticmethod
    def backward(ctx, g):
        F, mu, lam = ctx.saved_tensors
        lj = torch.linalg.det(F).log()
        FiT = torch.linalg.inv(F).mT
        P = mu * (F - FiT) + lam * lj[..., None, None] * FiT
        gmu = (g * ((F * F).sum((-2, -1)) - 3 - 2 * lj)).sum() / 2
        glam = (lj ** 2).sum() / 2
        return g[..., None, None] * P, gmu, glam
