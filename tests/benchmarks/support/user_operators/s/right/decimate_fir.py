import torch


class DecimateFIR(torch.autograd.Function):
    """'valid' FIR filter followed by keeping every `stride`-th sample.  x (..., T), taps (K,)."""

    @staticmethod
    def forward(ctx, x, taps, stride=2):
        ctx.save_for_backward(x, taps)
        ctx.stride = stride
        return x.unfold(-1, taps.numel(), stride) @ taps

    @staticmethod
    def backward(ctx, grad):
        x, taps = ctx.saved_tensors
        s, n = ctx.stride, grad.shape[-1]
        gx = gt = None
        if ctx.needs_input_grad[0]:
            gx = torch.zeros_like(x)
            for k in range(taps.numel()):
                gx[..., k : k + s * (n - 1) + 1 : s] += grad * taps[k]
        if ctx.needs_input_grad[1]:
            frames = x.unfold(-1, taps.numel(), s)
            gt = (frames * grad[..., None]).flatten(0, -2).sum(0)
        return gx, gt, None
