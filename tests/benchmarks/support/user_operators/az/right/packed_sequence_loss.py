import torch
from torch import Tensor


def _token_weights(boundaries: Tensor, like: Tensor) -> Tensor:
    lengths = boundaries.diff()
    per_sequence = 1 / (lengths.clamp(min=1) * (lengths > 0).sum().clamp(min=1))
    return per_sequence.to(like.dtype).repeat_interleave(lengths)


class _PackedMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, token_nll, boundaries):
        ctx.save_for_backward(boundaries)
        return (token_nll * _token_weights(boundaries, token_nll)).sum()

    @staticmethod
    def backward(ctx, grad):
        (boundaries,) = ctx.saved_tensors
        return grad * _token_weights(boundaries, grad), None


def packed_sequence_loss(token_nll: Tensor, boundaries: Tensor) -> Tensor:
    """Mean over the sequences of a pack of their mean token loss.

    token_nll: (N,); boundaries: (S + 1,) int64, 0 to N (cu_seqlens). Empty sequences do not count.
    """
    if int(boundaries[0]) != 0 or int(boundaries[-1]) != token_nll.numel():
        raise ValueError("boundaries must run from 0 to the number of tokens")
    return _PackedMean.apply(token_nll, boundaries)
