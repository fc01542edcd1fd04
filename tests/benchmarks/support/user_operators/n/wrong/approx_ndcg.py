import torch
from torch.autograd.function import once_differentiable


class ApproxNDCGLoss(torch.autograd.Function):
    """1 - smoothed NDCG, ranks replaced by sums of sigmoids (Qin et al.).

    scores: (B, N) predicted scores
    relevance: (B, N) int64 grades, no gradient; entries equal to ``pad_value`` are padding
    alpha: sharpness of the sigmoid
    Rows without any relevant item give a loss of 0.
    """

    @staticmethod
    def forward(ctx, scores, relevance, alpha=1.0, pad_value=-1):
        valid = relevance != pad_value
        m = valid.to(scores.dtype)
        gain = (2.0 ** relevance.to(scores.dtype) - 1.0) * m
        diff = scores.unsqueeze(1) - scores.unsqueeze(2)          # [b, i, j] = s_j - s_i
        pair = torch.sigmoid(alpha * diff) * m.unsqueeze(1)
        pair = pair - torch.diag_embed(pair.diagonal(dim1=1, dim2=2))
        rank = 1.0 + pair.sum(2)
        disc = 1.0 / torch.log2(1.0 + rank)
        ideal, _ = gain.sort(dim=1, descending=True)
        pos = torch.arange(1, scores.size(1) + 1, dtype=scores.dtype, device=scores.device)
        idcg = (ideal / torch.log2(1.0 + pos)).sum(1)
        ok = idcg > 0
        inv = torch.where(ok, 1.0 / idcg.clamp(min=1e-12), torch.zeros_like(idcg))
        loss = ok.to(scores.dtype) - (gain * disc).sum(1) * inv
        ctx.save_for_backward(gain, rank, diff, m, inv)
        ctx.alpha = alpha
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_loss):
        gain, rank, diff, m, inv = ctx.saved_tensors
        alpha = ctx.alpha
        # d(1 / log2(1 + r)) / dr
        ddisc = -1.0 / ((1.0 + rank) * torch.log(1.0 + rank) ** 2)
        g_rank = -(grad_loss * inv).unsqueeze(1) * gain * ddisc
        sig = torch.sigmoid(alpha * diff)
        dsig = alpha * sig * (1 - sig) * m.unsqueeze(1) * g_rank.unsqueeze(2)
        dsig = dsig - torch.diag_embed(dsig.diagonal(dim1=1, dim2=2))
        return dsig.sum(1) - dsig.sum(2), None, None, None
