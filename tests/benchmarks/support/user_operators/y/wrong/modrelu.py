import torch


class ModReLU(torch.autograd.Function):
    """relu(|z| + b) / (|z| + eps) * z for complex z: (..., C), real b: (C,)"""

    @staticmethod
    def forward(ctx, z, b, eps=1e-5):
        ctx.save_for_backward(z, b)
        ctx.eps = eps
        r = z.abs()
        return torch.relu(r + b) / (r + eps) * z

    @staticmethod
    def backward(ctx, g):
        z, b = ctx.saved_tensors
        r = z.abs()
        on = (r + b > 0).to(r.dtype)
        den = r + ctx.eps
        f = on * (r + b) / den
        radial = (g * z).real
        df = on / den - f / den
        gz = f * g + df * radial * torch.sgn(z)
        gb = (radial * on / den).reshape(-1, b.numel()).sum(0)
        return gz, gb, None
