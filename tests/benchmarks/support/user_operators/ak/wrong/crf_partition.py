import torch
from torch.autograd.function import once_differentiable


class CRFPartition(torch.autograd.Function):
    """log Z of linear chains.

    emissions: (B, T, K); transitions: (K, K), from row to column; lengths: (B,), at least 1. -> (B,)
    """

    @staticmethod
    def forward(ctx, emissions, transitions, lengths):
        steps = emissions.shape[1]
        alpha = [emissions[:, 0]]
        for t in range(1, steps):
            new = torch.logsumexp(alpha[-1][:, :, None] + transitions, 1) + emissions[:, t]
            alpha.append(torch.where((t < lengths)[:, None], new, alpha[-1]))
        log_z = alpha[-1].logsumexp(-1)
        ctx.save_for_backward(emissions, transitions, torch.stack(alpha, 1), log_z)
        ctx.live = torch.arange(steps, device=lengths.device) < lengths[:, None]
        return log_z

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        emissions, transitions, alpha, log_z = ctx.saved_tensors
        live = ctx.live
        beta = torch.zeros_like(emissions[:, 0])
        ge, gt = torch.zeros_like(emissions), torch.zeros_like(transitions)
        for t in range(emissions.shape[1] - 1, -1, -1):
            ge[:, t] = (alpha[:, t] + beta - log_z[:, None]).exp() * (live[:, t] * g)[:, None]
            if t == 0:
                break
            step = transitions + (emissions[:, t] + beta)[:, None, :]
            pair = (alpha[:, t - 1][:, :, None] + step - log_z[:, None, None]).exp()
            gt += (pair * g[:, None, None]).sum(0)
            beta = torch.where(live[:, t, None], step.logsumexp(-1), beta)
        return ge, gt, None
