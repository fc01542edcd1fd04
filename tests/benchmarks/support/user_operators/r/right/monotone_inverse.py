import torch


class MonotoneInverse(torch.autograd.Function):
    """x with fn(x) = y, for a smooth increasing elementwise fn (any callable on tensors).

    Bisection on [lo, hi], which must hold the solution. Only y is differentiated, fn may not have
    parameters of its own that need a gradient.
    """

    @staticmethod
    def forward(ctx, y, fn, lo=-10.0, hi=10.0, steps=60):
        a, b = torch.full_like(y, lo), torch.full_like(y, hi)
        if not ((fn(a) < y) & (y < fn(b))).all():
            raise ValueError("y is outside the range of fn on [lo, hi]")
        for _ in range(steps):
            mid = (a + b) / 2
            below = fn(mid) < y
            a, b = torch.where(below, mid, a), torch.where(below, b, mid)
        x = (a + b) / 2
        ctx.save_for_backward(x)
        ctx.fn = fn
        return x

    @staticmethod
    def backward(ctx, grad_x):
        x, = ctx.saved_tensors
        twice = torch.is_grad_enabled()
        with torch.enable_grad():
            if not x.requires_grad:
                x = x.detach().requires_grad_()
            slope, = torch.autograd.grad(ctx.fn(x).sum(), x, create_graph=twice)
        return grad_x / slope, None, None, None, None


def inverse(fn, y, *, bracket=(-10.0, 10.0), steps=60):
    return MonotoneInverse.apply(y, fn, *bracket, steps)
