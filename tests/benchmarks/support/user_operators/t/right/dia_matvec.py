import torch


class DIAMatVec(torch.autograd.Function):
    """y = A x for a square matrix stored by diagonals: data[k, i] = A[i, i + offsets[k]].

    offsets is a list of ints; entries of data that lie outside of A are ignored.
    """

    @staticmethod
    def forward(ctx, data, x, offsets):
        n = x.numel()
        y = torch.zeros_like(x)
        for k, off in enumerate(offsets):
            lo = max(0, -off)
            hi = max(lo, min(n, n - off))
            y[lo:hi] += data[k, lo:hi] * x[lo + off : hi + off]
        ctx.save_for_backward(data, x)
        ctx.offsets = offsets
        return y

    @staticmethod
    def backward(ctx, grad):
        data, x = ctx.saved_tensors
        n = x.numel()
        gd, gx = torch.zeros_like(data), torch.zeros_like(x)
        for k, off in enumerate(ctx.offsets):
            lo = max(0, -off)
            hi = max(lo, min(n, n - off))
            gd[k, lo:hi] = grad[lo:hi] * x[lo + off : hi + off]
            gx[lo + off : hi + off] += data[k, lo:hi] * grad[lo:hi]
        return gd, gx, None
