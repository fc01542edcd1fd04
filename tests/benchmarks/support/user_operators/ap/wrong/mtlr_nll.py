import torch


def _scores(psi):
    f = psi.flip(-1).cumsum(-1).flip(-1)
    return torch.cat([f, torch.zeros_like(f[:, :1])], 1)


class MTLR(torch.autograd.Function):
    """Multi-task logistic regression, mean negative log likelihood.

    psi: (N, K) logits; bins: (N,) int in [0, K]; event: (N,) bool.
    A censored subject survives its bin (bins < K where ~event).
    """

    @staticmethod
    def forward(ctx, psi, bins, event):
        f = _scores(psi)
        k = torch.arange(f.shape[1], device=f.device)
        keep = torch.where(event[:, None], k == bins[:, None], k > bins[:, None])
        ctx.save_for_backward(psi, keep)
        num = f.masked_fill(~keep, float("-inf")).logsumexp(1)
        return (f.logsumexp(1) - num).mean()

    @staticmethod
    def backward(ctx, grad):
        psi, keep = ctx.saved_tensors
        f = _scores(psi)
        d = f.softmax(1) - f.masked_fill(~keep, float("-inf")).softmax(1)
        return grad / len(psi) * d.cumsum(1)[:, 1:], None, None
