import torch


class ModReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, b):
        ctx.save_for_backward(z, b)
        r = z.abs().clamp_min(1e-12)
        return torch.relu(r + b) * (z / r)

    @staticmethod
    def backward(ctx, g):
        z, b = ctx.saved_tensors
        r = z.abs().clamp_min(1e-12)
        u = z / r
        m = torch.relu(r + b)
        rad = (u.conj() * g).real
        gr = rad * (m > 0)
        gb = gr.reshape(-1, b.numel()).sum(0)
        return u * gr + m / r * (g - u * rad), gb
