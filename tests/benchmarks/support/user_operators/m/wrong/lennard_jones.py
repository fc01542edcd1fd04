import torch
from torch.autograd.function import once_differentiable


class LennardJonesEnergy(torch.autograd.Function):
    """Total 12-6 energy of a list of pair distances.

    Args:
        r: (P,) distances.
        sigma, epsilon: scalar tensors.
        cutoff: pairs at or beyond it do not count.
        shift: subtract the energy at the cutoff, so that it is continuous there.
    """

    @staticmethod
    def forward(ctx, r, sigma, epsilon, cutoff=3.0, shift=False):
        ctx.save_for_backward(r, sigma, epsilon)
        ctx.cutoff, ctx.shift = cutoff, shift
        s6 = (sigma / r) ** 6
        energy = 4 * epsilon * (s6 * s6 - s6)
        if shift:
            c6 = (sigma / cutoff) ** 6
            energy = energy - 4 * epsilon * (c6 * c6 - c6)
        return energy.masked_fill(r >= cutoff, 0).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        r, sigma, epsilon = ctx.saved_tensors
        inside = (r < ctx.cutoff).to(r.dtype)
        s6 = (sigma / r) ** 6
        s12 = s6 * s6
        grad_r = -24 * epsilon * (2 * s12 - s6) / r * inside
        d_sigma = 24 * epsilon * (2 * s12 - s6) / sigma
        d_eps = 4 * (s12 - s6)
        if ctx.shift:
            c6 = (sigma / ctx.cutoff) ** 6
            c12 = c6 * c6
            d_eps = d_eps - 4 * (c12 - c6)
        grad_sigma = (d_sigma * inside).sum().reshape(sigma.shape)
        grad_eps = (d_eps * inside).sum().reshape(epsilon.shape)
        return grad_output * grad_r, grad_output * grad_sigma, grad_output * grad_eps, None, None
