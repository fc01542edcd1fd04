import torch


class RappAmplifier(torch.autograd.Function):
    """AM/AM power amplifier on complex baseband, y = G x / (1 + (G |x| / vsat)^(2p))^(1/2p)."""

    @staticmethod
    def forward(ctx, x, vsat, gain, p):
        r = gain * x.abs() / vsat
        q = r ** (2 * p)
        h = gain * (1 + q) ** (-1 / (2 * p))
        ctx.save_for_backward(x, vsat, q, h)
        ctx.gain, ctx.p = gain, p
        return h * x

    @staticmethod
    def backward(ctx, gy):
        x, vsat, q, h = ctx.saved_tensors
        # gain depends on |x| as well
        gh = (gy.conj() * x).real
        slope = h * q / (1 + q)
        a2 = x.abs().square().clamp(min=torch.finfo(h.dtype).tiny)
        gx = gy * h
        gv = (gh * slope).sum().reshape(vsat.shape) / vsat
        return gx, gv, None, None
