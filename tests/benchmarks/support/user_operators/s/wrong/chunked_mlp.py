import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class ChunkedFFN(torch.autograd.Function):
    """silu(x W1^T) W2^T, `chunk` rows at a time; the hidden layer is never kept.

    x (N, d), w1 (h, d), w2 (o, h).  N need not be divisible by chunk.
    """

    @staticmethod
    def forward(ctx, x, w1, w2, chunk=1024):
        ctx.save_for_backward(x, w1, w2)
        ctx.chunk = chunk
        return torch.cat([F.silu(part @ w1.t()) @ w2.t() for part in x.split(chunk)])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, w1, w2 = ctx.saved_tensors
        gx, gw1, gw2 = torch.zeros_like(x), torch.zeros_like(w1), torch.zeros_like(w2)
        for lo in range(0, x.shape[0] - ctx.chunk + 1, ctx.chunk):
            rows = slice(lo, lo + ctx.chunk)
            h = x[rows] @ w1.t()
            s = torch.sigmoid(h)
            gw2 += grad[rows].t() @ (h * s)
            gh = grad[rows] @ w2 * s * (1 + h * (1 - s))
            gw1 += gh.t() @ x[rows]
            gx[rows] = gh @ w1
        return gx, gw1, gw2, None
