import torch


class NeoHookean(torch.autograd.Function):
    r"""Compressible neo-Hookean strain energy density

        psi(F) = mu/2 (tr F^T F - d) - mu log J + lam/2 (log J)^2,   J = det F > 0

    F is (E, d, d); mu and lam are (E,) or 0-dim tensors.
    """

    @staticmethod
    def forward(ctx, F, mu, lam):
        ctx.save_for_backward(F, mu, lam)
        d = F.shape[-1]
        logJ = torch.linalg.det(F).log()
        I1 = (F * F).sum((-1, -2))
        return 0.5 * mu * (I1 - d) - mu * logJ + 0.5 * lam * logJ ** 2

    @staticmethod
    def backward(ctx, grad):
        F, mu, lam = ctx.saved_tensors
        gF = gmu = glam = None
        logJ = torch.linalg.det(F).log()
        if ctx.needs_input_grad[0]:
            FinvT = torch.linalg.inv(F)
            m, l = (x[..., None, None] for x in (mu, lam))
            P = m * (F - FinvT) + l * logJ[:, None, None] * FinvT
            gF = grad[:, None, None] * P
        if ctx.needs_input_grad[1]:
            gmu = grad * (0.5 * ((F * F).sum((-1, -2)) - F.shape[-1]) - logJ)
            gmu = gmu.sum_to_size(mu.shape)
        if ctx.needs_input_grad[2]:
            glam = (0.5 * grad * logJ ** 2).sum_to_size(lam.shape)
        return gF, gmu, glam
