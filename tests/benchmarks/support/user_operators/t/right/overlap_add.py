import torch


class OverlapAdd(torch.autograd.Function):
    @staticmethod
    def forward(ctx, frames, window, hop):
        n_frames, size = frames.shape
        ctx.save_for_backward(frames, window)
        ctx.hop = hop
        out = frames.new_zeros((n_frames - 1) * hop + size)
        at = torch.arange(n_frames)[:, None] * hop + torch.arange(size)
        return out.index_add(0, at.to(out.device).reshape(-1), (frames * window).reshape(-1))

    @staticmethod
    def backward(ctx, grad):
        frames, window = ctx.saved_tensors
        g = grad.contiguous().as_strided(frames.shape, (ctx.hop, 1))
        return g * window, (g * frames).sum(0), None
