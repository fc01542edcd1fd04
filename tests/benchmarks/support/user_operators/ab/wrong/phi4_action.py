import torch


def _shift(phi, dim, step, antiperiodic):
    """Neighbour at +-1 along dim; the last dimension is time and may change sign over the boundary."""
    out = phi.roll(-step, dim)
    if antiperiodic and dim == phi.dim() - 1:
        sign = torch.ones(phi.shape[-1], dtype=phi.dtype, device=phi.device)
        sign[-1 if step > 0 else 0] = -1
        out = out * sign
    return out


class Phi4Action(torch.autograd.Function):
    """Euclidean lattice action of a scalar field, sum of (d phi)^2 / 2 + m2 phi^2 / 2 + lam phi^4 / 24."""

    @staticmethod
    def forward(ctx, phi, m2, lam, time_boundary="periodic"):
        assert time_boundary in ("periodic", "antiperiodic")
        anti = time_boundary == "antiperiodic"
        ctx.save_for_backward(phi, m2, lam)
        ctx.anti = anti
        s = 0.5 * m2 * phi ** 2 + lam / 24 * phi ** 4
        for dim in range(phi.dim()):
            s = s + 0.5 * (_shift(phi, dim, 1, anti) - phi) ** 2
        return s.sum()

    @staticmethod
    def backward(ctx, g):
        phi, m2, lam = ctx.saved_tensors
        force = m2 * phi + lam / 6 * phi ** 3
        for dim in range(phi.dim()):
            ahead = _shift(phi, dim, 1, ctx.anti)
            behind = _shift(phi, dim, -1, False)
            force = force + 2 * phi - ahead - behind
        return g * force, 0.5 * g * (phi ** 2).sum(), g * (phi ** 4).sum() / 24, None
