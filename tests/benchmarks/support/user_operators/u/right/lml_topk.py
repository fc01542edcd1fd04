import torch


class LML(torch.autograd.Function):
    """Limited multi-label projection (Amos et al., 2019): y = sigmoid(x + nu), nu such that sum(y) = k.

    x (..., n) with n > k.
    """

    @staticmethod
    def forward(ctx, x, k, n_iter=80):
        lo = -x.max(-1, keepdim=True).values - 40.0
        hi = -x.min(-1, keepdim=True).values + 40.0
        for _ in range(n_iter):
            nu = (lo + hi) / 2
            low = torch.sigmoid(x + nu).sum(-1, keepdim=True) < k
            lo = torch.where(low, nu, lo)
            hi = torch.where(low, hi, nu)
        y = torch.sigmoid(x + (lo + hi) / 2)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        h = y * (1 - y)
        mean = (h * grad).sum(-1, keepdim=True) / h.sum(-1, keepdim=True)
        return h * (grad - mean), None, None
