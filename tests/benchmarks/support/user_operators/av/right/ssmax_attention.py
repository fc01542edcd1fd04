import torch
from torch import Tensor
from torch.autograd import Function


def _weights(raw: Tensor, s: Tensor, lengths: Tensor) -> Tensor:
    logn = lengths.to(raw.dtype).log()[:, None, None, None]
    pad = torch.arange(raw.size(-1), device=raw.device) >= lengths[:, None]
    return (raw * s[:, None, None] * logn).masked_fill(pad[:, None, None], float("-inf")).softmax(-1)


class ScalableSoftmaxAttention(Function):
    """Scalable-softmax attention: logits times s_h * log(n), n the number of keys of the sample.

    q (B, H, M, D), k, v (B, H, N, D), s (H,), lengths (B,) int, 1 <= lengths <= N
    """

    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, v: Tensor, s: Tensor, lengths: Tensor) -> Tensor:
        ctx.save_for_backward(q, k, v, s, lengths)
        return _weights(q @ k.mT, s, lengths) @ v

    @staticmethod
    def backward(ctx, do: Tensor):
        q, k, v, s, lengths = ctx.saved_tensors
        raw = q @ k.mT
        p = _weights(raw, s, lengths)
        logn = lengths.to(raw.dtype).log()[:, None, None, None]
        dp = do @ v.mT
        dz = p * (dp - (dp * p).sum(-1, keepdim=True)) * logn
        d_s = (dz * raw).sum((0, 2, 3))
        d_raw = dz * s[:, None, None]
        return d_raw @ k, d_raw.mT @ q, p.mT @ do, d_s, None
