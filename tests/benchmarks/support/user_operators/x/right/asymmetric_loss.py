import torch


class AsymmetricLossOptimized(torch.autograd.Function):
    """ASL for multi-label classification.

    Notice - the gradient of the focusing weights is kept (no torch.no_grad around them).

    x: logits of any shape, y: the same shape in {0, 1}; returns the sum.
    """

    @staticmethod
    def forward(ctx, x, y, gamma_neg=4, gamma_pos=1, clip=0.05, eps=1e-8):
        ctx.save_for_backward(x, y)
        ctx.cfg = (gamma_neg, gamma_pos, clip, eps)
        p = torch.sigmoid(x)
        pm = (p - clip).clamp(min=0)
        pos = y * (1 - p).pow(gamma_pos) * torch.log(p.clamp(min=eps))
        neg = (1 - y) * pm.pow(gamma_neg) * torch.log((1 - pm).clamp(min=eps))
        return -(pos + neg).sum()

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        gamma_neg, gamma_pos, clip, eps = ctx.cfg
        p = torch.sigmoid(x)
        pm = (p - clip).clamp(min=0)
        lp = torch.log(p.clamp(min=eps))
        ln = torch.log((1 - pm).clamp(min=eps))
        dpos = (1 - p).pow(gamma_pos) / p - gamma_pos * (1 - p).pow(gamma_pos - 1) * lp
        dneg = gamma_neg * pm.pow(gamma_neg - 1) * ln - pm.pow(gamma_neg) / (1 - pm)
        dp = y * dpos + (1 - y) * dneg
        return -grad_output * dp * p * (1 - p), None, None, None, None, None
