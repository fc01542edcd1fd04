import torch
from torch.autograd import Function


class LengthMaskedEMA(Function):
    """Exponential moving average over padded sequences.

    s_t = decay * s_{t-1} + (1 - decay) * x_t while t < length, and s_t = s_{t-1} in the padding,
    starting from 0.

    x: (B, T, D) float, lengths: (B,) integer with 0 <= length <= T, 0 <= decay < 1
    """

    @staticmethod
    def forward(ctx, x, lengths, decay=0.9):
        assert x.dim() == 3 and lengths.shape == x.shape[:1]
        assert not lengths.is_floating_point()
        steps = torch.arange(x.shape[1], device=x.device)
        valid = steps[None, :] < lengths[:, None]
        ctx.save_for_backward(valid)
        ctx.decay = decay
        out = []
        s = torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            keep = valid[:, t, None]
            s = torch.where(keep, decay * s + (1 - decay) * x[:, t], s)
            out.append(s)
        return torch.stack(out, 1)

    @staticmethod
    def backward(ctx, grad):
        valid, = ctx.saved_tensors
        decay = ctx.decay
        ds = torch.zeros_like(grad[:, 0])
        grads = []
        for t in reversed(range(grad.shape[1])):
            keep = valid[:, t, None]
            ds = ds + grad[:, t]
            grads.append((1 - decay) * ds)
            ds = torch.where(keep, decay * ds, ds)
        return torch.stack(grads[::-1], 1), None, None
