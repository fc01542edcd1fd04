import torch


class HardGumbel(torch.autograd.Function):
    """One-hot of the largest perturbed logit; straight-through gradient of the soft sample."""

    @staticmethod
    def forward(ctx, logits, gumbel, tau):
        ctx.tau = tau
        ctx.save_for_backward(logits, gumbel)
        i = (logits + gumbel).argmax(-1, keepdim=True)
        return torch.zeros_like(logits).scatter(-1, i, 1.0)

    @staticmethod
    def backward(ctx, grad):
        logits, gumbel = ctx.saved_tensors
        soft = ((logits + gumbel) / ctx.tau).softmax(-1)
        g = soft * (grad - (grad * soft).sum(-1, keepdim=True))
        g = g / ctx.tau
        return g, g, None
