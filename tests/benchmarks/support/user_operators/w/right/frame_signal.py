import torch


class FrameSignal(torch.autograd.Function):
    """Cut a signal (L,) into frames (n, size) every ``hop`` samples; samples left over are dropped."""

    @staticmethod
    def forward(ctx, x, size, hop):
        n = (x.shape[0] - size) // hop + 1
        idx = torch.arange(n, device=x.device)[:, None] * hop + torch.arange(size, device=x.device)
        ctx.save_for_backward(idx)
        ctx.length = x.shape[0]
        return x[idx]

    @staticmethod
    def backward(ctx, g):
        # overlap-add
        idx, = ctx.saved_tensors
        flat = g.reshape(-1)
        out = torch.zeros(ctx.length, dtype=g.dtype, device=g.device)
        return out.index_add(0, idx.reshape(-1), flat), None, None
