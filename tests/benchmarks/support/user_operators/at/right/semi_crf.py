import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class SemiCRFLogZ(Function):
    """log partition of a semi-Markov CRF.

    seg[t, l, k]: score of a segment of length l + 1 with label k that starts at t (those that reach over
    the end do not count); trans[j, k]: label j before k.  seg (T, L, K), trans (K, K)
    """

    @staticmethod
    def forward(ctx, seg, trans):
        T, L, K = seg.shape
        # arrive[t]: log sum of all that ends before t, come[t]: with the transition added
        arrive, come = [None] * (T + 1), [None] * (T + 1)
        come[0] = torch.zeros_like(seg[0, 0])
        for t in range(1, T + 1):
            terms = [come[t - l - 1] + seg[t - l - 1, l] for l in range(min(L, t))]
            arrive[t] = torch.logsumexp(torch.stack(terms), 0)
            come[t] = torch.logsumexp(arrive[t][:, None] + trans, 0)
        logZ = torch.logsumexp(arrive[T], 0)
        ctx.save_for_backward(seg, trans, torch.stack(come), torch.stack(arrive[1:]), logZ)
        return logZ

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        seg, trans, come, arrive, logZ = ctx.saved_tensors
        T, L, K = seg.shape
        g_seg, g_trans = torch.zeros_like(seg), torch.zeros_like(trans)
        leave = [None] * (T + 1)
        leave[T] = torch.zeros_like(come[0])
        for t in range(T - 1, -1, -1):
            n = min(L, T - t)
            after = torch.stack([seg[t, l] + leave[t + l + 1] for l in range(n)])
            g_seg[t, :n] = torch.exp(come[t] + after - logZ)
            into = torch.logsumexp(after, 0)
            if t:
                pair = arrive[t - 1][:, None] + trans + into
                g_trans += torch.exp(pair - logZ)
                leave[t] = torch.logsumexp(trans + into, 1)
        return grad * g_seg, grad * g_trans
