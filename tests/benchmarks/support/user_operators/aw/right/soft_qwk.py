import torch


class SoftQWK(torch.autograd.Function):
    """1 - quadratic weighted kappa with soft predictions. probs (N, K), labels (N,) long."""

    @staticmethod
    def forward(ctx, probs, labels):
        ctx.save_for_backward(probs, labels)
        n, k = probs.shape
        i = torch.arange(k, device=probs.device, dtype=probs.dtype)
        w = (i[:, None] - i) ** 2
        hist = torch.bincount(labels, minlength=k).to(probs.dtype)
        num = (w[labels] * probs).sum()
        den = (hist @ w @ probs.sum(0)) / n
        return num / den

    @staticmethod
    def backward(ctx, g):
        probs, labels = ctx.saved_tensors
        n, k = probs.shape
        i = torch.arange(k, device=probs.device, dtype=probs.dtype)
        w = (i[:, None] - i) ** 2
        counts = torch.bincount(labels, minlength=k).to(probs.dtype)
        expected = counts @ w / n
        num = (w[labels] * probs).sum()
        den = expected @ probs.sum(0)
        return g * (w[labels] - num / den * expected) / den, None
