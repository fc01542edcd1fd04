import torch
from torch.autograd import Function


class MaskedAffineCoupling(Function):
    """RealNVP coupling.  x, s, t: (N, D); scale: (D,) learnable; mask: (D,) of 0/1.

    Masked (=1) dims pass through; the others are  x * exp(scale * tanh(s)) + t.
    """

    @staticmethod
    def forward(ctx, x, s, t, scale, mask):
        free = 1 - mask
        log_s = scale * torch.tanh(s) * free
        y = x * log_s.exp() + t * free
        ctx.save_for_backward(x, s, scale, free)
        return y, log_s.sum(dim=1)

    @staticmethod
    def backward(ctx, gy, gld):
        x, s, scale, free = ctx.saved_tensors
        th = torch.tanh(s)
        e = (scale * th * free).exp()
        gx = gs = gt = gscale = None
        if ctx.needs_input_grad[0]:
            gx = gy * e
        if ctx.needs_input_grad[2]:
            gt = gy * free
        g_log = (gy * x * e + gld[:, None]) * free
        if ctx.needs_input_grad[1]:
            gs = g_log * scale * (1 - th * th)
        if ctx.needs_input_grad[3]:
            gscale = (g_log * th).sum(0)
        return gx, gs, gt, gscale, None
