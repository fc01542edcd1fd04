import torch


class SlidingFilter(torch.autograd.Function):
    """Valid correlation of rows x (B, T) with one kernel w (K,), every `hop` samples."""

    @staticmethod
    def forward(ctx, x, w, hop):
        k = w.numel()
        ctx.frames = (x.shape[1] - k) // hop + 1
        ctx.hop = hop
        ctx.save_for_backward(x, w)
        return x.unfold(1, k, hop) @ w

    @staticmethod
    def backward(ctx, gy):
        x, w = ctx.saved_tensors
        x = x.contiguous()
        k, hop, frames = w.numel(), ctx.hop, ctx.frames
        view = x.as_strided((x.shape[0], frames, k), (x.shape[1], hop, 1), x.storage_offset())
        gw = torch.einsum("bf,bfk->k", gy, view)
        gx = torch.zeros_like(x)
        for i in range(k):
            gx[:, i:i + hop * (frames - 1) + 1:hop] += gy * w[i]
        return gx, gw, None
