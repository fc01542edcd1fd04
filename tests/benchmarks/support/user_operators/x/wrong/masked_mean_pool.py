import torch


class MaskedMeanPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx, hidden, mask):
        m = mask.unsqueeze(-1).to(hidden.dtype)
        count = m.sum(1).clamp(min=1e-9)
        ctx.save_for_backward(m, count)
        return (hidden * m).sum(1) / count

    @staticmethod
    def backward(ctx, grad):
        m, count = ctx.saved_tensors
        return (grad / m.size(1)).unsqueeze(1) * m, None
