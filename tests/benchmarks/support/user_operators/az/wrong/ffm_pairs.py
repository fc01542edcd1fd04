import torch
from torch.autograd import Function


class FFMPairs(Function):
    @staticmethod
    def forward(ctx, latent, value):
        assert latent.dim() == 4 and latent.size(1) == latent.size(2) == value.size(1)
        ctx.save_for_backward(latent, value)
        dots = (latent * latent.transpose(1, 2)).sum(-1)
        pairs = dots * value[:, :, None] * value[:, None, :]
        return pairs.triu(1).sum((1, 2))

    @staticmethod
    def backward(ctx, grad):
        latent, value = ctx.saved_tensors
        fields = value.size(1)
        off_diagonal = 1 - torch.eye(fields, dtype=value.dtype, device=value.device)
        weight = grad[:, None, None] * value[:, :, None] * value[:, None, :] * off_diagonal
        grad_latent = weight[..., None] * latent.transpose(1, 2)
        dots = (latent * latent.transpose(1, 2)).sum(-1).triu(1)
        grad_value = grad[:, None] * (dots * value[:, None, :]).sum(2)
        return grad_latent, grad_value
