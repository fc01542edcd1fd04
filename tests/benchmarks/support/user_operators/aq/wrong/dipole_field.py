import torch


class DipoleField(torch.autograd.Function):
    """B-field (mu0/4pi = 1) at r from a point dipole m in the origin. m, r: (..., 3)"""

    @staticmethod
    def forward(ctx, m, r):
        ctx.save_for_backward(m, r)
        d = r.norm(dim=-1, keepdim=True)
        mr = (m * r).sum(-1, keepdim=True)
        return 3 * mr * r / d ** 5 - m / d ** 3

    @staticmethod
    def backward(ctx, gB):
        m, r = ctx.saved_tensors
        d = r.norm(dim=-1, keepdim=True)
        mr = (m * r).sum(-1, keepdim=True)
        gr = (gB * r).sum(-1, keepdim=True)
        mg = (m * gB).sum(-1, keepdim=True)
        gm = 3 * gr * r / d ** 5 - gB / d ** 3
        grad_r = 3 * (m * gr + gB * mr) / d ** 5 - 15 * mr * gr * r / d ** 7
        return gm, grad_r
