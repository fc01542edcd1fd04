import torch


class LengthMeanPool(torch.autograd.Function):
    """Mean of hidden states (B, T, D) over the first lengths[b] steps."""

    @staticmethod
    def forward(ctx, hidden, lengths):
        B, T, _ = hidden.shape
        mask = torch.arange(T, device=hidden.device)[None, :] < lengths[:, None]
        mask = mask.to(hidden.dtype)
        denom = mask.sum(1, keepdim=True).clamp(min=1.0)
        ctx.save_for_backward(mask, denom)
        return torch.einsum("btd,bt->bd", hidden, mask) / denom

    @staticmethod
    def backward(ctx, grad_output):
        mask, denom = ctx.saved_tensors
        grad = (grad_output / denom).unsqueeze(1).expand(-1, mask.size(1), -1)
        return grad, None
