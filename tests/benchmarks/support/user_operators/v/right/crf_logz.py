import torch
from torch import nn
from torch.autograd.function import once_differentiable


class LogPartition(torch.autograd.Function):
    """emissions (B, T, K), trans (K, K) from row to column, lengths (B,) in 1..T -> log Z (B,)"""

    @staticmethod
    def alphas(e, trans, lengths):
        a = [e[:, 0]]
        for t in range(1, e.shape[1]):
            nxt = torch.logsumexp(a[-1][:, :, None] + trans, 1) + e[:, t]
            a.append(torch.where((t < lengths)[:, None], nxt, a[-1]))
        return a

    @staticmethod
    def forward(ctx, e, trans, lengths):
        ctx.save_for_backward(e, trans, lengths)
        return torch.logsumexp(LogPartition.alphas(e, trans, lengths)[-1], 1)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        e, trans, lengths = ctx.saved_tensors
        a = LogPartition.alphas(e, trans, lengths)
        logz = torch.logsumexp(a[-1], 1)[:, None]
        ge, gt = torch.zeros_like(e), torch.zeros_like(trans)
        beta = torch.zeros_like(e[:, 0])
        for t in range(e.shape[1] - 1, -1, -1):
            on = (t < lengths)[:, None]
            ge[:, t] = torch.where(on, (a[t] + beta - logz).exp() * g[:, None], torch.zeros_like(beta))
            if t > 0:
                into = (e[:, t] + beta)[:, None, :] + trans
                pair = (a[t - 1][:, :, None] + into - logz[:, :, None]).exp() * g[:, None, None]
                gt += (pair * on[:, :, None]).sum(0)
                beta = torch.where(on, torch.logsumexp(into, 2), beta)
        return ge, gt, None


class CRF(nn.Module):
    def __init__(self, num_tags):
        super().__init__()
        self.trans = nn.Parameter(torch.zeros(num_tags, num_tags))

    def forward(self, emissions, lengths):
        return LogPartition.apply(emissions, self.trans, lengths)
