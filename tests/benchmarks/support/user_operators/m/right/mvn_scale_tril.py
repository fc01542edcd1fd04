import math

import torch


class MVNLogProb(torch.autograd.Function):
    """log N(x; loc, L L^T) per row.

    x: (N, D), loc: (D,), scale_tril: (D, D). Only the lower triangle of
    ``scale_tril`` is read; its diagonal must be positive.
    """

    @staticmethod
    def forward(ctx, x, loc, scale_tril):
        diff = (x - loc).t()
        z = torch.linalg.solve_triangular(scale_tril, diff, upper=False)
        ctx.save_for_backward(z, scale_tril)
        log_det = scale_tril.diagonal().log().sum()
        return -0.5 * (z * z).sum(0) - log_det - 0.5 * x.shape[1] * math.log(2 * math.pi)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        z, scale_tril = ctx.saved_tensors
        # (D, N): L^{-T} z weighted by the incoming gradient
        a = torch.linalg.solve_triangular(scale_tril.t(), z, upper=True) * grad_output
        grad_x = -a.t()
        grad_loc = a.sum(1)
        grad_L = torch.tril(a @ z.t())
        grad_L = grad_L - torch.diag(grad_output.sum() / scale_tril.diagonal())
        return grad_x, grad_loc, grad_L
