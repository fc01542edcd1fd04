import torch


class Manipulability(torch.autograd.Function):
    """Yoshikawa index sqrt(det(J J^T)), J (..., m, n) with m <= n and full rank."""

    @staticmethod
    def forward(ctx, J):
        w = torch.linalg.det(J @ J.mT).sqrt()
        ctx.save_for_backward(J, w)
        return w

    @staticmethod
    def backward(ctx, gw):
        J, w = ctx.saved_tensors
        return (gw * w)[..., None, None] * torch.linalg.pinv(J)
