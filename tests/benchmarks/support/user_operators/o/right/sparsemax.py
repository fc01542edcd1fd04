import torch


class Sparsemax(torch.autograd.Function):
    """Euclidean projection of the slices of ``x`` along ``dim`` onto the probability simplex."""

    @staticmethod
    def forward(ctx, x, dim=-1):
        srt = x.sort(dim, descending=True).values
        shape = [1] * x.dim()
        shape[dim] = -1
        k = torch.arange(1, x.size(dim) + 1, device=x.device, dtype=x.dtype).view(shape)
        cum = srt.cumsum(dim)
        size = (1 + k * srt > cum).sum(dim, keepdim=True)
        tau = (cum.gather(dim, size - 1) - 1) / size
        out = (x - tau).clamp(min=0)
        ctx.save_for_backward(out)
        ctx.dim = dim
        return out

    @staticmethod
    def backward(ctx, grad):
        out, = ctx.saved_tensors
        support = out > 0
        mean = (grad * support).sum(ctx.dim, keepdim=True) / support.sum(ctx.dim, keepdim=True)
        return (grad - mean) * support, None
