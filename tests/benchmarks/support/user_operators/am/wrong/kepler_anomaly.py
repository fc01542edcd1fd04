import torch
from torch.autograd import Function


class EccentricAnomaly(Function):
    """Solve Kepler's equation ``E - e sin(E) = M`` with Newton steps.

    Args:
        mean: mean anomaly in radians, any shape
        ecc: eccentricity in [0, 1), broadcastable against ``mean``
        steps: number of Newton iterations

    The derivative comes from the implicit function theorem, not from the iterations.
    """

    @staticmethod
    def forward(ctx, mean, ecc, steps=15):
        M, e = torch.broadcast_tensors(mean, ecc)
        E = M + e * torch.sin(M)
        for _ in range(steps):
            E = E - (E - e * torch.sin(E) - M) / (1 - e * torch.cos(E))
        ctx.save_for_backward(ecc, E)
        ctx.mean_shape = mean.shape
        return E

    @staticmethod
    def backward(ctx, grad):
        ecc, E = ctx.saved_tensors
        slope = 1 / (1 - ecc * torch.cos(E))
        g_mean = g_ecc = None
        if ctx.needs_input_grad[0]:
            g_mean = (grad * slope).sum_to_size(ctx.mean_shape)
        if ctx.needs_input_grad[1]:
            g_ecc = (grad * torch.sin(E)).sum_to_size(ecc.shape)
        return g_mean, g_ecc, None
