import torch


class VNLeakyReLU(torch.autograd.Function):
    """Vector neuron nonlinearity. q, k: (B, C, 3)"""

    @staticmethod
    def forward(ctx, q, k, slope):
        ctx.save_for_backward(q, k)
        ctx.slope = slope
        dot = (q * k).sum(-1, keepdim=True)
        kk = (k * k).sum(-1, keepdim=True)
        return q - (1 - slope) * (dot < 0) * dot / kk * k

    @staticmethod
    def backward(ctx, g):
        q, k = ctx.saved_tensors
        dot = (q * k).sum(-1, keepdim=True)
        kk = (k * k).sum(-1, keepdim=True)
        gk = (g * k).sum(-1, keepdim=True)
        m = (1 - ctx.slope) * (dot < 0) / kk
        return g - m * gk * k, m * (dot * gk / kk * k - gk * q - dot * g), None
