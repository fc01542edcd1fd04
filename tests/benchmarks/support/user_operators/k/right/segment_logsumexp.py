"""Log-sum-exp over segments, for pooling on graphs."""
import torch
from torch import Tensor


@torch.library.custom_op("graphpool::segment_lse", mutates_args=())
def _segment_lse(x: Tensor, index: Tensor, num_segments: int) -> Tensor:
    idx = index.unsqueeze(1).expand_as(x)
    top = x.new_full((num_segments, x.size(1)), float("-inf"))
    top = top.scatter_reduce(0, idx, x, "amax")
    e = torch.exp(x - top[index])
    return torch.zeros_like(top).index_add_(0, index, e).log() + top


@_segment_lse.register_fake
def _(x, index, num_segments):
    return x.new_empty(num_segments, x.size(1))


def _setup(ctx, inputs, output):
    x, index, _ = inputs
    ctx.save_for_backward(x, index, output)


def _backward(ctx, grad):
    x, index, out = ctx.saved_tensors
    p = torch.exp(x - out[index])
    return grad[index] * p, None, None


_segment_lse.register_autograd(_backward, setup_context=_setup)


def segment_logsumexp(x: Tensor, index: Tensor, num_segments: int) -> Tensor:
    """out[s] = log sum over i with index[i] == s of exp(x[i]).

    Args:
        x: (E, F)
        index: (E,) int64 in [0, num_segments); every segment must occur
        num_segments: S

    Returns:
        (S, F), twice differentiable
    """
    if index.dim() != 1 or x.dim() != 2 or x.size(0) != index.numel():
        raise ValueError("expected x (E, F) and index (E,)")
    if index.unique().numel() != num_segments:
        raise ValueError("empty segment")
    return _segment_lse(x, index, num_segments)
