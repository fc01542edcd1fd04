import torch


class LogSumDet(torch.autograd.Function):
    """log |sum_k w_k det(M_k)| and its sign, for wave functions of several determinants.

    orbitals (batch, k, n, n), weights (k,). The sign is not differentiable.
    """

    @staticmethod
    def forward(ctx, orbitals, weights):
        sgn, ld = torch.linalg.slogdet(orbitals)
        peak = ld.amax(1, keepdim=True)
        total = (weights * sgn * (ld - peak).exp()).sum(1)
        out = total.abs().log() + peak[:, 0]
        sign = total.sign()
        ctx.save_for_backward(orbitals, weights, out, sign)
        ctx.mark_non_differentiable(sign)
        return out, sign

    @staticmethod
    def backward(ctx, g, _):
        orbitals, weights, out, sign = ctx.saved_tensors
        sgn, ld = torch.linalg.slogdet(orbitals)
        rel = sgn * (ld - out[:, None]).exp()
        scale = g.mul_(sign)[:, None]
        g_weights = (scale * rel).sum(0)
        inv_t = torch.linalg.inv(orbitals).transpose(-1, -2)
        g_orbitals = (scale * rel * weights)[..., None, None] * inv_t
        return g_orbitals, g_weights
