import torch
from torch.autograd import Function


class SparsemaxFunction(Function):
    @staticmethod
    def forward(ctx, input, dim=-1):
        z = input - input.max(dim=dim, keepdim=True)[0]
        srt = z.sort(dim=dim, descending=True)[0]
        shape = [1] * z.dim()
        shape[dim] = -1
        rho = torch.arange(1, z.size(dim) + 1, device=z.device, dtype=z.dtype).view(shape)
        csum = srt.cumsum(dim)
        size = (1 + rho * srt > csum).sum(dim=dim, keepdim=True)
        tau = (csum.gather(dim, size - 1) - 1) / size.to(z.dtype)
        output = (z - tau).clamp(min=0)
        ctx.dim = dim
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx, grad_output):
        output, = ctx.saved_tensors
        support = (output > 0).to(grad_output.dtype)
        g = grad_output * support
        mean = g.sum(dim=ctx.dim, keepdim=True) / support.sum(dim=ctx.dim, keepdim=True)
        return g - mean * support, None
