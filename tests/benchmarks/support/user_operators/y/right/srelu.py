import torch


class SReLUFn(torch.autograd.Function):
    # S-shaped ReLU, x: (N, C, ...), the four parameters: (C,)
    @staticmethod
    def forward(ctx, x, tl, al, tr, ar):
        ctx.save_for_backward(x, tl, al, tr, ar)
        tl, al, tr, ar = (p.view(1, -1, *[1] * (x.dim() - 2)) for p in (tl, al, tr, ar))
        y = torch.where(x >= tr, tr + ar * (x - tr), x)
        return torch.where(x <= tl, tl + al * (x - tl), y)

    @staticmethod
    def backward(ctx, g):
        x, tl, al, tr, ar = ctx.saved_tensors
        dims = [d for d in range(x.dim()) if d != 1]
        tl, al, tr, ar = (p.view(1, -1, *[1] * (x.dim() - 2)) for p in (tl, al, tr, ar))
        left = x <= tl
        right = (x >= tr) & ~left
        zero = torch.zeros_like(x)
        gl, gr = torch.where(left, g, zero), torch.where(right, g, zero)
        gx = torch.where(left | right, zero, g) + gl * al + gr * ar
        gtl = (gl * (1 - al)).sum(dims)
        gal = (gl * (x - tl)).sum(dims)
        gtr = (gr * (1 - ar)).sum(dims)
        gar = (gr * (x - tr)).sum(dims)
        return gx, gtl, gal, gtr, gar
