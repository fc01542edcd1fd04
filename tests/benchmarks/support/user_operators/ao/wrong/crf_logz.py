import torch
from torch.autograd.function import once_differentiable


class CRFLogPartition(torch.autograd.Function):
    """log Z of a linear chain CRF.

    emissions    (B, T, K)
    transitions  (K, K), from row to column
    lengths      (B,) long, 1 <= length <= T
    returns      (B,)
    """

    @staticmethod
    def forward(ctx, emissions, transitions, lengths):
        B, T, K = emissions.shape
        alpha = [emissions[:, 0]]
        for t in range(1, T):
            nxt = torch.logsumexp(alpha[-1].unsqueeze(2) + transitions, 1) + emissions[:, t]
            alive = (t < lengths).unsqueeze(1)
            alpha.append(torch.where(alive, nxt, alpha[-1]))
        alpha = torch.stack(alpha, 1)
        logz = torch.logsumexp(alpha[:, -1], 1)
        ctx.save_for_backward(emissions, transitions, lengths, alpha, logz)
        return logz

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        emissions, transitions, lengths, alpha, logz = ctx.saved_tensors
        B, T, K = emissions.shape
        ge = torch.zeros_like(emissions)
        gt = torch.zeros_like(transitions)
        beta = emissions.new_zeros(B, K)
        for t in range(T - 1, -1, -1):
            inside = (t < lengths).unsqueeze(1)
            post = (alpha[:, t] + beta - logz.unsqueeze(1)).exp()
            ge[:, t] = torch.where(inside, post * g.unsqueeze(1), torch.zeros_like(post))
            if t == 0:
                break
            right = (emissions[:, t] + beta).unsqueeze(1)
            pair = (alpha[:, t - 1].unsqueeze(2) + transitions + right - logz.view(-1, 1, 1)).exp()
            gt += (pair * g.view(-1, 1, 1)).sum(0)
            beta = torch.where(inside, torch.logsumexp(transitions + right, 2), beta)
        return ge, gt, None
