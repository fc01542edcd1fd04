import torch
from torch import Tensor


def _tokens(layout: Tensor, h: int, i: int, bs: int) -> Tensor:
    cols = layout[h, i].nonzero().flatten()
    return (cols[:, None] * bs + torch.arange(bs, device=layout.device)).flatten()


class _BlockSparse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, v: Tensor, layout: Tensor) -> Tensor:
        ctx.save_for_backward(q, k, v, layout)
        h, nb, _ = layout.shape
        bs, scale = q.size(2) // nb, q.size(-1) ** -0.5
        out = torch.zeros_like(q)
        for a in range(h):
            for i in range(nb):
                idx, rows = _tokens(layout, a, i, bs), slice(i * bs, (i + 1) * bs)
                if idx.numel():
                    p = (q[:, a, rows] @ k[:, a, idx].mT * scale).softmax(-1)
                    out[:, a, rows] = p @ v[:, a, idx]
        return out

    @staticmethod
    def backward(ctx, do: Tensor):
        q, k, v, layout = ctx.saved_tensors
        h, nb, _ = layout.shape
        bs, scale = q.size(2) // nb, q.size(-1) ** -0.5
        acc = torch.promote_types(k.dtype, torch.float32)
        dq = torch.zeros_like(q)
        dk, dv = torch.zeros_like(k, dtype=acc), torch.zeros_like(v, dtype=acc)
        for a in range(h):
            for i in range(nb):
                idx, rows = _tokens(layout, a, i, bs), slice(i * bs, (i + 1) * bs)
                if not idx.numel():
                    continue
                qi, ki, vi, g = q[:, a, rows], k[:, a, idx], v[:, a, idx], do[:, a, rows]
                p = (qi @ ki.mT * scale).softmax(-1)
                dp = g @ vi.mT
                ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * scale
                dq[:, a, rows] = ds @ ki
                dk[:, a, idx] += ds.mT @ qi
                dv[:, a, idx] += p.mT @ g
        return dq, dk.to(k.dtype), dv.to(v.dtype), None


def block_sparse_attention(q: Tensor, k: Tensor, v: Tensor, layout: Tensor) -> Tensor:
    """q, k, v (B, H, N, D); layout (H, N / bs, N / bs) bool, True where a block is kept. Empty rows give 0."""
    return _BlockSparse.apply(q, k, v, layout)
