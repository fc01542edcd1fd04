import torch


class RouterZLoss(torch.autograd.Function):
    """Mean of logsumexp(logits)^2 over the tokens that are not padding (ST-MoE, eq. 5)."""

    @staticmethod
    def forward(ctx, logits, attention_mask):
        ctx.save_for_backward(logits, attention_mask)
        lse = torch.logsumexp(logits, dim=-1)
        return (lse**2 * attention_mask).sum() / attention_mask.sum()

    @staticmethod
    def backward(ctx, grad):
        logits, attention_mask = ctx.saved_tensors
        lse = torch.logsumexp(logits, dim=-1)
        w = 2 * lse * attention_mask / attention_mask.sum()
        return grad * w[..., None] * logits.softmax(-1), None
