import torch


class CayleyMap(torch.autograd.Function):
    """Q = (I + A)^{-1} (I - A) for A of shape (..., n, n); orthogonal if A is skew-symmetric."""

    @staticmethod
    def forward(ctx, a):
        eye = torch.eye(a.size(-1), dtype=a.dtype, device=a.device)
        q = torch.linalg.solve(eye + a, eye - a)
        ctx.save_for_backward(a, q)
        return q

    @staticmethod
    def backward(ctx, grad):
        a, q = ctx.saved_tensors
        eye = torch.eye(a.size(-1), dtype=a.dtype, device=a.device)
        left = torch.linalg.solve((eye + a).mH, grad)
        if a.is_complex():
            return -left @ (eye + q).mH
        return -left @ (eye + q).mT
