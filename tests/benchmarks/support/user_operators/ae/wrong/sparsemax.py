import torch


class Sparsemax(torch.autograd.Function):
    """Euclidean projection of logits onto the simplex (Martins & Astudillo)."""

    @staticmethod
    def _threshold(z, dim):
        srt = z.sort(dim=dim, descending=True).values
        css = srt.cumsum(dim) - 1
        shape = [1] * z.dim()
        shape[dim] = -1
        rho = torch.arange(1, z.shape[dim] + 1, dtype=z.dtype, device=z.device).view(shape)
        k = (rho * srt > css).sum(dim, keepdim=True)
        return css.gather(dim, k - 1) / k.to(z.dtype)

    @staticmethod
    def forward(ctx, z, dim=-1):
        ctx.dim = dim
        y = (z - Sparsemax._threshold(z, dim)).clamp(min=0)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        support = (y > 0).to(g.dtype)
        size = support.sum(ctx.dim, keepdim=True)
        mean = g.sum(ctx.dim, keepdim=True) / size
        return support * (g - mean), None
