import torch
from torch.autograd import Function


class CategoricalEntropy(Function):
    """Entropy of softmax(logits / temperature) along ``dim``."""

    @staticmethod
    def forward(ctx, logits, dim=-1, temperature=1.0):
        log_p = (logits / temperature).log_softmax(dim)
        ctx.save_for_backward(logits)
        ctx.dim = dim
        ctx.temperature = temperature
        return -(log_p.exp() * log_p).sum(dim)

    @staticmethod
    def backward(ctx, grad):
        logits, = ctx.saved_tensors
        log_p = (logits / ctx.temperature).log_softmax(ctx.dim)
        p = log_p.exp()
        entropy = -(p * log_p).sum(ctx.dim, keepdim=True)
        g = -grad.unsqueeze(ctx.dim) * p * (log_p + entropy)
        return g / ctx.temperature, None, None
