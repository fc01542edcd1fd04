import torch
from torch import Tensor
from torch.autograd import Function


def _logp(x: Tensor, seg: Tensor, n: int) -> Tensor:
    top = x.new_full((n,), float("-inf")).scatter_reduce(0, seg, x.detach(), "amax")
    z = x - top[seg]
    return z - x.new_zeros(n).index_add(0, seg, z.exp()).log()[seg]


class SegmentEntropy(Function):
    """Entropy of the softmax inside each segment (0 for an empty one). logits (N,), segment (N,) int, n segments"""

    @staticmethod
    def forward(ctx, logits: Tensor, segment: Tensor, n: int) -> Tensor:
        logp = _logp(logits, segment, n)
        ctx.save_for_backward(logits, segment)
        ctx.n = n
        return logits.new_zeros(n).index_add(0, segment, -logp.exp() * logp)

    @staticmethod
    def backward(ctx, g: Tensor):
        logits, segment = ctx.saved_tensors
        logp = _logp(logits, segment, ctx.n)
        p = logp.exp()
        h = torch.zeros_like(g).index_add(0, segment, -p * logp)
        return -g[segment] * p * (logp + h[segment]), None, None
