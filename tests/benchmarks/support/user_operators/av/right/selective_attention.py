import torch
from torch import Tensor


def _mask(n: int, device, diagonal: int) -> Tensor:
    return torch.ones(n, n, dtype=torch.bool, device=device).triu(diagonal)


def _select(s0: Tensor) -> Tensor:
    """What each token takes off others: strictly past, never the first token."""
    ok = ~_mask(s0.size(-1), s0.device, 0)
    ok[:, 0] = False
    return torch.where(ok & (s0 > 0), s0, 0.0)


def _attend(s: Tensor) -> Tensor:
    sel = _select(s[:, 0])
    f = sel.cumsum(-2) - sel
    return (s - f.unsqueeze(1)).masked_fill(_mask(s.size(-1), s.device, 1), float("-inf")).softmax(-1)


class SelectiveAttention(torch.autograd.Function):
    """Causal attention whose head 0 also votes keys out for later queries. q, k, v (B, H, N, D)."""

    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        ctx.save_for_backward(q, k, v)
        return _attend(q @ k.mT * q.size(-1) ** -0.5) @ v

    @staticmethod
    def backward(ctx, do: Tensor):
        q, k, v = ctx.saved_tensors
        scale = q.size(-1) ** -0.5
        s = q @ k.mT * scale
        p = _attend(s)
        dp = do @ v.mT
        ds = p * (dp - (dp * p).sum(-1, keepdim=True))
        df = -ds.sum(1)
        dsel = df.flip(-2).cumsum(-2).flip(-2) - df
        dsel = torch.where(_select(s[:, 0]) > 0, dsel, 0.0)
        ds = torch.cat([ds[:, :1] + dsel.unsqueeze(1), ds[:, 1:]], 1) * scale
        return ds @ k, ds.mT @ q, p.mT @ do
