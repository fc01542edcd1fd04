"""Pairwise logistic ranking loss over sessions packed back to back."""
import torch
import torch.nn.functional as F


def _session_ids(offsets, n):
    pos = torch.arange(n, device=offsets.device)
    return torch.bucketize(pos, offsets[1:], right=True)


def _pair_mask(labels, seg):
    same = seg[:, None] == seg[None, :]
    return (labels[:, None] > labels[None, :]) & same


class SessionPairLoss(torch.autograd.Function):
    """scores: (N,), labels: (N,) relevance (data), offsets: (S + 1,), first 0 and last N.

    Returns the loss of each session, (S,).
    """

    @staticmethod
    def forward(ctx, scores, labels, offsets, sigma=1.0, normalize=True):
        if scores.dim() != 1 or labels.shape != scores.shape:
            raise ValueError("scores and labels must be 1-d and of one length")
        n_sessions = offsets.numel() - 1
        seg = _session_ids(offsets, scores.numel())
        mask = _pair_mask(labels, seg)
        z = sigma * (scores[:, None] - scores[None, :])
        per_item = (F.softplus(-z) * mask).sum(1)
        out = scores.new_zeros(n_sessions).index_add_(0, seg, per_item)
        pairs = scores.new_zeros(n_sessions).index_add_(0, seg, mask.sum(1).to(scores.dtype))
        if normalize:
            out = out / pairs.clamp(min=1)
        ctx.save_for_backward(scores, labels, seg, pairs)
        ctx.sigma, ctx.normalize = sigma, normalize
        return out

    @staticmethod
    def backward(ctx, grad_loss):
        scores, labels, seg, pairs = ctx.saved_tensors
        if ctx.normalize:
            grad_loss = grad_loss / pairs.clamp(min=1)
        z = ctx.sigma * (scores[:, None] - scores[None, :])
        lam = -ctx.sigma * torch.sigmoid(-z).detach() * _pair_mask(labels, seg)
        lam = lam * grad_loss[seg][:, None]
        return lam.sum(1) - lam.sum(0), None, None, None, None
