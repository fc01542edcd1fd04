import torch


def _masked_softmax(x, mask):
    x = x.masked_fill(~mask, float("-inf"))
    alive = mask.any(-1, keepdim=True)
    x = torch.where(alive, x, torch.zeros_like(x))
    return torch.softmax(x, -1) * mask


class ListNet(torch.autograd.Function):
    """Top-one ListNet cross entropy with padding.

    logits (B, L), relevance (B, L) data, mask (B, L) bool, True at real items. Rows without
    any real item give zero loss. Output (B,).
    """

    @staticmethod
    def forward(ctx, logits, relevance, mask, temperature):
        p = _masked_softmax(relevance / temperature, mask)
        q = _masked_softmax(logits, mask)
        ctx.save_for_backward(logits, relevance, mask)
        ctx.temperature = temperature
        logq = torch.where(mask, torch.log(q.clamp(min=torch.finfo(q.dtype).tiny)), torch.zeros_like(q))
        return -(p * logq).sum(-1)

    @staticmethod
    def backward(ctx, grad):
        logits, relevance, mask = ctx.saved_tensors
        p = _masked_softmax(relevance / ctx.temperature, mask)
        q = _masked_softmax(logits, mask)
        return grad.unsqueeze(-1) * (q - p), None, None, None
