import torch

E = torch.tensor([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1], [1, 1], [-1, 1], [-1, -1], [1, -1]])
W = [4 / 9] + [1 / 9] * 4 + [1 / 36] * 4


def _lattice(f):
    e = E.to(device=f.device, dtype=f.dtype)
    w = torch.tensor(W, device=f.device, dtype=f.dtype).view(9, 1, 1)
    return e, w


def _equilibrium(f, e, w):
    rho = f.sum(0)
    m = torch.einsum("qd,qhw->dhw", e, f)
    em = torch.einsum("qd,dhw->qhw", e, m)
    quad = 4.5 * em ** 2 - 1.5 * (m ** 2).sum(0)
    return w * (rho + 3 * em + quad / rho), rho, m, em, quad


class BGKCollision(torch.autograd.Function):
    """D2Q9 BGK collision. f (9, H, W), tau a scalar tensor or a field (H, W)."""

    @staticmethod
    def forward(ctx, f, tau):
        ctx.save_for_backward(f, tau)
        feq = _equilibrium(f, *_lattice(f))[0]
        return f - (f - feq) / tau

    @staticmethod
    def backward(ctx, g):
        f, tau = ctx.saved_tensors
        e, w = _lattice(f)
        feq, rho, m, em, quad = _equilibrium(f, e, w)
        wg = w * g / tau
        d_rho = wg.sum(0)
        d_m = torch.einsum("qhw,qd->dhw", wg * (3 + 9 * em / rho), e) - 3 * m / rho * wg.sum(0)
        gf = g * (1 - 1 / tau) + d_rho + torch.einsum("qd,dhw->qhw", e, d_m)
        gtau = (g * (f - feq) / tau ** 2).sum(0)
        if tau.dim() == 0:
            gtau = gtau.sum()
        return gf, gtau
