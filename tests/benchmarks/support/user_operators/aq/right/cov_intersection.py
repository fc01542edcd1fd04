import torch


class CovarianceIntersection(torch.autograd.Function):
    """
    P = (w A^-1 + (1 - w) B^-1)^-1

    Args:
        A, B: (n, n) invertible covariances of the two estimates
        w: 0-dim weight in (0, 1)
    """

    @staticmethod
    def forward(ctx, A, B, w):
        Ai, Bi = torch.linalg.inv(A), torch.linalg.inv(B)
        P = torch.linalg.inv(w * Ai + (1 - w) * Bi)
        ctx.save_for_backward(A, B, w, P)
        return P

    @staticmethod
    def backward(ctx, gP):
        A, B, w, P = ctx.saved_tensors
        Ai, Bi = torch.linalg.inv(A), torch.linalg.inv(B)
        gM = -P.T @ gP @ P.T
        gA = -w * Ai.T @ gM @ Ai.T
        gB = -(1 - w) * Bi.T @ gM @ Bi.T
        gw = (gM * (Ai - Bi)).sum()
        return gA, gB, gw
