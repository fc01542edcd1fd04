import torch
from torch import Tensor
from torch.autograd import Function


def _delta(n: int, span: int, device) -> Tensor:
    i = torch.arange(n, device=device)
    return (i[:, None] - i + span).clamp(0, 2 * span - 1)


class DisentangledBias(Function):
    """DeBERTa's content-to-position plus position-to-content scores.

    q, k (B, H, N, D), rel_k, rel_q (H, 2 * span, D) -> (B, H, N, N)
    """

    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, rel_k: Tensor, rel_q: Tensor) -> Tensor:
        ctx.save_for_backward(q, k, rel_k, rel_q)
        c2p, p2c = q @ rel_k.mT, k @ rel_q.mT
        n = q.size(2)
        idx = _delta(n, rel_k.size(1) // 2, q.device).expand(*q.shape[:2], n, n)
        return c2p.gather(-1, idx) + p2c.gather(-1, idx).mT

    @staticmethod
    def backward(ctx, g: Tensor):
        q, k, rel_k, rel_q = ctx.saved_tensors
        n, width = q.size(2), rel_k.size(1)
        idx = _delta(n, width // 2, q.device).expand(*q.shape[:2], n, n)
        zero = g.new_zeros(*q.shape[:3], width)
        dc2p = zero.scatter_add(-1, idx, g)
        dp2c = zero.scatter_add(-1, idx, g.mT)
        return dc2p @ rel_k, dp2c @ rel_q, (dc2p.mT @ q).sum(0), (dp2c.mT @ k).sum(0)
