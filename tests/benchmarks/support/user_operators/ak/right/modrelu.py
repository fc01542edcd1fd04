import torch
from torch.autograd.function import once_differentiable


class ModReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, b):
        r = z.abs().clamp(min=1e-12)
        ctx.save_for_backward(z, b, r)
        return z * torch.relu(1 + b / r)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        z, b, r = ctx.saved_tensors
        on = r + b > 0
        along = (g.conj() * z).real / r * on
        gz = g * torch.relu(1 + b / r) - z * (b / r.square()) * along
        return gz, along.reshape(-1, b.numel()).sum(0)
