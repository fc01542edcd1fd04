import torch
from torch import Tensor
from torch.autograd import Function


def _neighbours(n: int, kernel: int, dilation: int, device) -> tuple[Tensor, Tensor]:
    off = (torch.arange(kernel, device=device) - kernel // 2) * dilation
    idx = torch.arange(n, device=device)[:, None] + off
    return idx.clamp(0, n - 1), (idx >= 0) & (idx < n)


class _NA1D(Function):
    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, v: Tensor, kernel: int, dilation: int) -> Tensor:
        ctx.save_for_backward(q, k, v)
        ctx.kernel, ctx.dilation = kernel, dilation
        idx, ok = _neighbours(q.size(2), kernel, dilation, q.device)
        s = torch.einsum("bhnd,bhnkd->bhnk", q, k[:, :, idx]) * q.size(-1) ** -0.5
        s = s.masked_fill(~ok, float("-inf"))
        return torch.einsum("bhnk,bhnkd->bhnd", s.softmax(-1), v[:, :, idx])

    @staticmethod
    def backward(ctx, g: Tensor):
        q, k, v = ctx.saved_tensors
        idx, ok = _neighbours(q.size(2), ctx.kernel, ctx.dilation, q.device)
        scale = q.size(-1) ** -0.5
        kn, vn, flat = k[:, :, idx], v[:, :, idx], idx.flatten()
        s = torch.einsum("bhnd,bhnkd->bhnk", q, kn) * scale
        p = s.softmax(-1)
        dp = torch.einsum("bhnd,bhnkd->bhnk", g, vn)
        ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * scale
        dq = torch.einsum("bhnk,bhnkd->bhnd", ds, kn)
        dkn = ds.unsqueeze(-1) * q.unsqueeze(3)
        dvn = p.unsqueeze(-1) * g.unsqueeze(3)
        dk = torch.zeros_like(k).index_add(2, flat, dkn.flatten(2, 3))
        dv = torch.zeros_like(v).index_add(2, flat, dvn.flatten(2, 3))
        return dq, dk, dv, None, None


def natten1d_dilated(q: Tensor, k: Tensor, v: Tensor, kernel: int, dilation: int = 1) -> Tensor:
    """Dilated 1D neighbourhood attention, out-of-range neighbours are masked. (B, H, N, D), odd kernel."""
    return _NA1D.apply(q, k, v, kernel, dilation)
