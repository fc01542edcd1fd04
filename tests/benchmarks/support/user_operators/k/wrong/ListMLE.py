import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class ListMLE(Function):
    # scores, labels: (batch, slate); labels == pad are ignored. mean over the batch.
    # labels are not differentiated

    @staticmethod
    def forward(ctx, scores, labels, pad=-1.0):
        real = labels != pad
        key = labels.masked_fill(~real, float("-inf"))
        perm = key.argsort(dim=1, descending=True, stable=True)
        s = scores.gather(1, perm)
        m = real.gather(1, perm)
        s_m = s.masked_fill(~m, float("-inf"))
        tail = s_m.flip(1).logcumsumexp(1).flip(1)
        per = torch.where(m, tail - s, torch.zeros_like(s)).sum(1)
        ctx.save_for_backward(s_m, tail, m, perm)
        return per.mean()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        s, tail, m, perm = ctx.saved_tensors
        both = m.unsqueeze(2) & m.unsqueeze(1)
        # w[b, i, j]: weight of item j in the normaliser of place i <= j
        w = torch.exp(torch.where(both, s.unsqueeze(1) - tail.unsqueeze(2), torch.full_like(tail, -1e9).unsqueeze(2)))
        w = torch.triu(w)
        gs = w.sum(1) - m.to(w.dtype)
        out = gs.gather(1, perm)
        return grad * out / s.size(0), None, None


def listmle(scores, labels, pad=-1.0):
    return ListMLE.apply(scores, labels, pad)
