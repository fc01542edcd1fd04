import torch


class ListMLE(torch.autograd.Function):
    """Negative Plackett-Luce log-likelihood of the ordering by relevance, averaged over the lists.

    scores: (B, L); relevance: (B, L), larger is better, ties in the order given
    """

    @staticmethod
    def forward(scores, relevance):
        if scores.shape != relevance.shape:
            raise ValueError("scores and relevance must have one shape")
        order = relevance.argsort(dim=1, descending=True, stable=True)
        s = scores.gather(1, order)
        tail = torch.logcumsumexp(s.flip(1), 1).flip(1)
        return (tail - s).sum(1).mean()

    @staticmethod
    def setup_context(ctx, inputs, output):
        scores, relevance = inputs
        ctx.save_for_backward(scores, relevance)

    @staticmethod
    def backward(ctx, grad):
        scores, relevance = ctx.saved_tensors
        order = relevance.detach().argsort(dim=1, descending=True, stable=True)
        s = scores.gather(1, order)
        tail = torch.logcumsumexp(s.flip(1), 1).flip(1)
        reach = torch.logcumsumexp(-tail, 1)
        g = grad * ((s + reach).exp() - 1) / scores.size(0)
        return torch.zeros_like(scores).scatter(1, order, g), None
