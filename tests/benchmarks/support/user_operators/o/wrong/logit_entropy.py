import torch
from torch.autograd import Function


class CategoricalEntropy(Function):
    """Entropy of softmax(logits / temperature) along ``dim``."""

    @staticmethod
    def forward(ctx, logits, dim=-1, temperature=1.0):
        log_p = (logits / temperature).log_softmax(dim)
        ctx.save_for_backward(log_p)
        ctx.dim = dim
        ctx.temperature = temperature
        return -(log_p.exp() * log_p).sum(dim)

    @staticmethod
    def backward(ctx, grad):
        log_p, = ctx.saved_tensors
        p = log_p.exp()
        entropy = -(p * log_p).sum(ctx.dim, keepdim=True)
        g = -grad.unsqueeze(ctx.dim) * p * (log_p + entropy)
        return g / ctx.temperature, None, None
