import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class _LogZ(torch.autograd.Function):
    @staticmethod
    def forward(ctx, em, trans, lengths):
        B, T, K = em.shape
        alphas = [em[:, 0]]
        for t in range(1, T):
            nxt = torch.logsumexp(alphas[-1][:, :, None] + trans, 1) + em[:, t]
            alphas.append(torch.where((t < lengths)[:, None], nxt, alphas[-1]))
        ctx.save_for_backward(em, trans, lengths, torch.stack(alphas, 1))
        return torch.logsumexp(alphas[-1], 1)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        em, trans, lengths, alpha = ctx.saved_tensors
        g_em, g_trans = torch.zeros_like(em), torch.zeros_like(trans)
        lam = g[:, None] * torch.softmax(alpha[:, -1], 1)
        for t in range(em.shape[1] - 1, 0, -1):
            on = (t < lengths)[:, None]
            step = torch.exp(alpha[:, t - 1, :, None] + trans + (em[:, t] - alpha[:, t])[:, None])
            flow = step * lam[:, None]
            g_em[:, t] = lam * on
            g_trans += (flow * on[..., None]).sum(0)
            lam = torch.where(on, flow.sum(2), lam)
        g_em[:, 0] = lam
        return g_em, g_trans, None


class CRFPartition(nn.Module):
    """log Z of a linear chain.  emissions (B, T, K), lengths (B,) >= 1 or None -> (B,)"""

    def __init__(self, tags):
        super().__init__()
        self.trans = nn.Parameter(torch.zeros(tags, tags))

    def forward(self, emissions, lengths=None):
        if lengths is None:
            lengths = torch.full(emissions.shape[:1], emissions.shape[1], device=emissions.device)
        return _LogZ.apply(emissions, self.trans, lengths)
