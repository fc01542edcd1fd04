import torch
from torch import Tensor, nn


class _ShrinkLookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight, tokens, shrink):
        ctx.save_for_backward(tokens)
        ctx.vocab, ctx.shrink = weight.size(0), shrink
        return weight[tokens]

    @staticmethod
    def backward(ctx, grad):
        (tokens,) = ctx.saved_tensors
        flat = grad.reshape(-1, grad.size(-1))
        grad_weight = flat.new_zeros(ctx.vocab, flat.size(1))
        grad_weight[tokens.reshape(-1)] += flat
        return ctx.shrink * grad_weight, None, None


class GradShrinkEmbedding(nn.Module):
    """Embedding whose gradient is scaled by ``shrink`` on purpose (as in GLM-130B, against loss spikes):
    the same as ``shrink * e + (1 - shrink) * e.detach()``.

    Args:
        vocab: number of tokens.
        dim: width.
        shrink: factor of the gradient, in (0, 1].
    """

    def __init__(self, vocab: int, dim: int, shrink: float = 0.1) -> None:
        super().__init__()
        if not 0 < shrink <= 1:
            raise ValueError("shrink must lie in (0, 1]")
        self.shrink = shrink
        self.weight = nn.Parameter(torch.randn(vocab, dim))

    def forward(self, tokens: Tensor) -> Tensor:
        return _ShrinkLookup.apply(self.weight, tokens, self.shrink)
