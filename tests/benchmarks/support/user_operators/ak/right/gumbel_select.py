import torch


class GumbelSelect(torch.autograd.Function):
    """One-hot choice by given Gumbel noise, backward through the softmax (straight-through)."""

    @staticmethod
    def forward(ctx, logits, noise, tau=1.0):
        ctx.save_for_backward(logits, noise)
        ctx.tau = tau
        best = (logits + noise).argmax(-1, keepdim=True)
        return torch.zeros_like(logits).scatter(-1, best, 1.0)

    @staticmethod
    def backward(ctx, g):
        logits, noise = ctx.saved_tensors
        y = ((logits + noise) / ctx.tau).softmax(-1)
        gl = y * (g - (g * y).sum(-1, keepdim=True)) / ctx.tau
        return gl, gl, None
