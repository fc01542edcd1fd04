import torch
from torch.autograd import Function


class Sparsemax(Function):

    @staticmethod
    def forward(ctx, logits, dim=-1):
        z = logits.transpose(dim, -1)
        top = z.sort(dim=-1, descending=True).values
        k = torch.arange(1, z.size(-1) + 1, device=z.device, dtype=z.dtype)
        csum = top.cumsum(-1)
        inside = 1 + k * top > csum
        size = inside.sum(-1, keepdim=True)
        tau = (csum.gather(-1, size - 1) - 1) / size.to(z.dtype)
        out = (z - tau).clamp(min=0).transpose(dim, -1)
        ctx.dim = dim
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad):
        out, = ctx.saved_tensors
        support = (out > 0).to(grad.dtype)
        g = grad * support
        mean = g.sum(ctx.dim, keepdim=True) / support.sum(ctx.dim, keepdim=True)
        return support * (g - mean), None


def sparsemax(x, dim=-1):
    return Sparsemax.apply(x, dim)


if __name__ == "__main__":
    print(sparsemax(torch.tensor([[1.0, 0.8, -2.0]])))
