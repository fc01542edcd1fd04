import torch
from torch.autograd.function import once_differentiable


class FoPool(torch.autograd.Function):
    """QRNN pooling h_t = f_t h_{t-1} + (1 - f_t) z_t over the first axis; h0 has one axis less."""

    @staticmethod
    def forward(ctx, z, f, h0):
        h, out = h0, []
        for t in range(z.shape[0]):
            h = f[t] * h + (1 - f[t]) * z[t]
            out.append(h)
        out = torch.stack(out)
        ctx.save_for_backward(z, f, h0, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        z, f, h0, out = ctx.saved_tensors
        gz, gf = torch.empty_like(z), torch.empty_like(f)
        carry = torch.zeros_like(h0)
        for t in range(z.shape[0] - 1, -1, -1):
            gh = grad[t] + carry
            prev = out[t - 1] if t > 0 else h0
            gz[t] = gh * (1 - f[t])
            gf[t] = gh * (prev - z[t])
            carry = gh * f[t]
        return gz, gf, carry
