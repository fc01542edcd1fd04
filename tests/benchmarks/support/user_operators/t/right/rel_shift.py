import torch
import torch.nn.functional as F


class RelShift(torch.autograd.Function):
    """Transformer-XL's relative shift of scores (B, H, Q, K)."""

    @staticmethod
    def forward(ctx, scores):
        B, H, Q, K = scores.shape
        x = F.pad(scores, (1, 0)).reshape(B, H, K + 1, Q)
        return x[:, :, 1:].reshape(B, H, Q, K)

    @staticmethod
    def backward(ctx, grad):
        B, H, Q, K = grad.shape
        g = F.pad(grad.reshape(B, H, K, Q), (0, 0, 1, 0))
        return g.reshape(B, H, Q, K + 1)[..., 1:].contiguous()
