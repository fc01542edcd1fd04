import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class CRFLogPartition(Function):
    """Log partition function of a linear-chain CRF.

    emissions: (B, T, K)
    transitions: (K, K), entry [i, j] scores tag i followed by tag j
    mask: bool (B, T), a prefix of True per row, or None
    Returns (B,).
    """

    @staticmethod
    def forward(ctx, emissions, transitions, mask=None):
        B, T, K = emissions.shape
        if transitions.shape != (K, K):
            raise ValueError("transitions must be (K, K)")
        if mask is None:
            mask = torch.ones(B, T, dtype=torch.bool, device=emissions.device)
        if not mask[:, 0].all() or (mask[:, 1:] & ~mask[:, :-1]).any():
            raise ValueError("mask must be a non-empty prefix")
        alpha = [emissions[:, 0]]
        for t in range(1, T):
            new = (alpha[-1].unsqueeze(2) + transitions).logsumexp(1) + emissions[:, t]
            alpha.append(torch.where(mask[:, t, None], new, alpha[-1]))
        log_z = alpha[-1].logsumexp(1)
        ctx.save_for_backward(emissions, transitions, mask, torch.stack(alpha, 1), log_z)
        return log_z

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        emissions, transitions, mask, alpha, log_z = ctx.saved_tensors
        B, T, K = emissions.shape
        beta = torch.zeros_like(emissions[:, 0])
        g_em = torch.zeros_like(emissions)
        g_trans = torch.zeros_like(transitions)
        for t in range(T - 1, -1, -1):
            ok = mask[:, t]
            node = (alpha[:, t] + beta - log_z[:, None]).exp() * grad[:, None]
            g_em[:, t] = node * ok[:, None]
            if t == 0:
                break
            right = transitions + (emissions[:, t] + beta).unsqueeze(1)
            edge = (alpha[:, t - 1].unsqueeze(2) + right - log_z[:, None, None]).exp() * grad[:, None, None]
            g_trans = g_trans + (edge * ok[:, None, None]).sum(0)
            beta = torch.where(ok[:, None], right.logsumexp(2), beta)
        return g_em, g_trans, None
