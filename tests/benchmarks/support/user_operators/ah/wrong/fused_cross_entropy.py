from typing import Tuple

import torch
from torch.autograd.function import once_differentiable


class CrossEntropyLossFn(torch.autograd.Function):

    @staticmethod
    def forward(ctx, logits, labels, smoothing=0.0, logit_scale=1.0, lse_square_scale=0.0, ignored_index=-100):
        n_rows, n_cols = logits.shape
        assert labels.shape == (n_rows,)
        scaled = logits * logit_scale
        lse = scaled.logsumexp(-1)
        ignored = labels == ignored_index
        picked = scaled.gather(1, labels.masked_fill(ignored, 0).unsqueeze(1)).squeeze(1)
        losses = lse - (1 - smoothing) * picked - smoothing * scaled.mean(-1)
        z_losses = (lse_square_scale * lse * lse).masked_fill(ignored, 0.0)
        losses = losses.masked_fill(ignored, 0.0) + z_losses
        ctx.save_for_backward(logits, lse, labels)
        ctx.mark_non_differentiable(z_losses)
        ctx.smoothing = smoothing
        ctx.logit_scale = logit_scale
        ctx.lse_square_scale = lse_square_scale
        ctx.ignored_index = ignored_index
        return losses, z_losses

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_losses, grad_z_losses):
        del grad_z_losses
        logits, lse, labels = ctx.saved_tensors
        ignored = labels == ctx.ignored_index
        probs = torch.exp(logits * ctx.logit_scale - lse.unsqueeze(1))
        probs = probs * (1 + ctx.lse_square_scale * lse.unsqueeze(1))
        probs = probs - ctx.smoothing / logits.shape[1]
        probs.scatter_add_(
            1, labels.masked_fill(ignored, 0).unsqueeze(1), probs.new_full((logits.shape[0], 1), ctx.smoothing - 1.0)
        )
        dlogits = probs * (ctx.logit_scale * grad_losses.masked_fill(ignored, 0.0)).unsqueeze(1)
        return dlogits, None, None, None, None, None


def cross_entropy_loss(
    logits: torch.Tensor,
    labels: torch.Tensor,
    label_smoothing: float = 0.0,
    logit_scale: float = 1.0,
    lse_square_scale: float = 0.0,
    ignored_index: int = -100,
) -> Tuple[torch.Tensor, torch.Tensor]:
    """
    Arguments:
        logits: (batch, vocab_size)
        labels: (batch,)
        label_smoothing: float
        logit_scale: float. Multiply logits by this scale before calculating the loss.
        lse_square_scale: float. If > 0, we add lse_square_scale * lse(logits) ^ 2 to the loss.
            This is also referred to as "z-loss".
        ignored_index: int. If labels == ignored_index, the loss is set to 0.0.
    Returns:
        losses: (batch,), float
        z_losses: (batch,), float, for logging only
    """
    return CrossEntropyLossFn.apply(
        logits, labels, label_smoothing, logit_scale, lse_square_scale, ignored_index
    )
