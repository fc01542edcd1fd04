import torch


class MobiusAdd(torch.autograd.Function):
    """x (+)_c y in the Poincare ball of curvature -c; x, y (..., d) of one shape inside the ball, c a float"""

    @staticmethod
    def forward(ctx, x, y, c):
        ctx.save_for_backward(x, y)
        ctx.c = c
        xy, x2, y2 = ((a * b).sum(-1, keepdim=True) for a, b in ((x, y), (x, x), (y, y)))
        num = (1 + 2 * c * xy + c * y2) * x + (1 - c * x2) * y
        return num / (1 + 2 * c * xy + c**2 * x2 * y2)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        c = ctx.c
        xy, x2, y2 = ((a * b).sum(-1, keepdim=True) for a, b in ((x, y), (x, x), (y, y)))
        A = 1 + 2 * c * xy + c * y2
        B = 1 - c * x2
        den = 1 + 2 * c * xy + c**2 * x2 * y2
        out = (A * x + B * y) / den
        g = g / den
        gA, gB, gD = ((g * t).sum(-1, keepdim=True) for t in (x, y, -out))
        gx = A * g + 2 * c * (gA * y - gB * x + gD * (y + c * y2 * x))
        gy = B * g + 2 * c * (gA * (x + y) + gD * (x + c * x2 * y))
        return gx, gy, None
