import torch
from torch.autograd import Function


class TanhEquilibrium(Function):
    """Fixed point z = tanh(W z + u) found by plain iteration.

    weight: (D, D), must make the map a contraction; inject: (B, D) -> z (B, D)
    """

    @staticmethod
    def forward(ctx, weight, inject, max_iter=500):
        if inject.is_complex():
            raise TypeError("inject must be real")
        z = torch.zeros_like(inject)
        tol = 10 * torch.finfo(z.dtype).eps
        for _ in range(max_iter):
            new = torch.tanh(z @ weight.t() + inject)
            done = (new - z).abs().max() <= tol
            z = new
            if done:
                break
        else:
            raise RuntimeError("fixed point iteration did not converge")
        ctx.save_for_backward(weight, z)
        return z

    @staticmethod
    def backward(ctx, grad):
        weight, z = ctx.saved_tensors
        slope = 1 - z * z
        jac = slope.unsqueeze(-1) * weight
        eye = torch.eye(weight.size(0), dtype=z.dtype, device=z.device)
        lam = torch.linalg.solve(eye - jac.mT, grad.unsqueeze(-1)).squeeze(-1)
        g_u = lam * slope
        return g_u.t() @ z, g_u, None
