import torch


class _Rician(torch.autograd.Function):
    @staticmethod
    def forward(ctx, m, nu, sigma):
        ctx.save_for_backward(m, nu, sigma)
        v = sigma * sigma
        return -m.log() + v.log() + (m - nu) ** 2 / (2 * v) - torch.special.i0e(m * nu / v).log()

    @staticmethod
    def backward(ctx, g):
        m, nu, sigma = ctx.saved_tensors
        v = sigma * sigma
        z = m * nu / v
        A = torch.special.i1e(z) / torch.special.i0e(z)
        gm = g * (m / v - A * nu / v - 1 / m)
        gnu = g * (nu - A * m) / v
        gs = g * (2 / sigma - (m * m + nu * nu) / (v * sigma) + A * z / sigma)
        return gm.sum_to_size(m.shape), gnu.sum_to_size(nu.shape), gs.sum_to_size(sigma.shape)


def rician_nll(magnitude, signal, sigma, mask=None, reduction="mean"):
    """Negative log likelihood of MR magnitudes under Rician noise.

    magnitude, signal > 0 of one shape, sigma > 0 broadcasts. With ``mask`` (bool) only the voxels
    inside count.
    """
    loss = _Rician.apply(magnitude, signal, sigma)
    if mask is not None:
        loss = loss.masked_fill(~mask, 0)
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    return loss.sum() / (mask.sum().clamp(min=1) if mask is not None else loss.numel())
