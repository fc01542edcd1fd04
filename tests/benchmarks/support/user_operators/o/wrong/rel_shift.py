import torch
from torch.autograd import Function


class RelShift(Function):
    """Transformer-XL relative shift of attention scores (B, H, T, S): row t moves left by T - 1 - t."""

    @staticmethod
    def forward(ctx, scores):
        B, H, T, S = scores.shape
        padded = torch.cat([scores.new_zeros(B, H, T, 1), scores], -1)
        return padded.view(B, H, S + 1, T)[:, :, 1:].reshape(B, H, T, S)

    @staticmethod
    def backward(ctx, grad):
        B, H, T, S = grad.shape
        rows = grad.as_strided((grad.numel() // S, S), (S, 1))
        flat = torch.cat([rows.new_zeros(B, H, T), rows.reshape(B, H, T * S)], -1)
        return flat.view(B, H, T, S + 1)[..., 1:].contiguous()
