import torch
from torch import nn


class JosephForm(torch.autograd.Function):
    """P+ = (I - K H) P (I - K H)^T + K R K^T"""

    @staticmethod
    def forward(ctx, P, K, H, R):
        A = torch.eye(P.shape[-1], dtype=P.dtype, device=P.device) - K @ H
        ctx.save_for_backward(P, K, H, R)
        return A @ P @ A.T + K @ R @ K.T

    @staticmethod
    def backward(ctx, G):
        P, K, H, R = ctx.saved_tensors
        A = torch.eye(P.shape[-1], dtype=P.dtype, device=P.device) - K @ H
        gP = A.T @ G @ A
        if gP.dim() > P.dim():
            gP = gP.sum(0)
        Gt = G.mT
        gA = G @ A @ P.mT + Gt @ A @ P
        gKR = G @ K @ R.T + Gt @ K @ R
        gR = K.T @ G @ K
        if G.dim() == 3:
            gA, gKR, gR = gA.sum(0), gKR.sum(0), gR.sum(0)
        return gP, -gA @ H.T + gKR, -K.T @ gA, gR


class LearnedGainUpdate(nn.Module):
    """Covariance update of a Kalman filter whose gain is trained. P: (n, n) or (B, n, n)."""

    def __init__(self, n, m):
        super().__init__()
        self.K = nn.Parameter(torch.zeros(n, m))
        self.H = nn.Parameter(torch.eye(m, n))
        self.log_r = nn.Parameter(torch.zeros(m))

    def forward(self, P):
        return JosephForm.apply(P, self.K, self.H, torch.diag(self.log_r.exp()))
