import torch


class BendingEnergy(torch.autograd.Function):
    """Mean squared second differences of a displacement field u (B, D, H, W), D = 2 components.

    spacing: (sy, sx) voxel size
    """

    @staticmethod
    def ops(sy, sx):
        yy = lambda u: (u[..., 2:, :] - 2 * u[..., 1:-1, :] + u[..., :-2, :]) / sy ** 2
        xx = lambda u: (u[..., 2:] - 2 * u[..., 1:-1] + u[..., :-2]) / sx ** 2
        xy = lambda u: (u[..., 1:, 1:] - u[..., 1:, :-1] - u[..., :-1, 1:] + u[..., :-1, :-1]) / (sx * sy)
        return yy, xx, xy

    @staticmethod
    def forward(ctx, u, spacing=(1.0, 1.0)):
        ctx.save_for_backward(u)
        ctx.spacing = spacing
        yy, xx, xy = BendingEnergy.ops(*spacing)
        return (yy(u).square().mean() + xx(u).square().mean() + 2 * xy(u).square().mean())

    @staticmethod
    def backward(ctx, g):
        u, = ctx.saved_tensors
        sy, sx = ctx.spacing
        yy, xx, xy = BendingEnergy.ops(sy, sx)
        pad = torch.nn.functional.pad
        a = yy(u)
        a = 2 * a / a.numel() / sy ** 2
        gu = pad(a, (0, 0, 2, 0)) - 2 * pad(a, (0, 0, 1, 1)) + pad(a, (0, 0, 0, 2))
        b = xx(u)
        b = 2 * b / b.numel() / sx ** 2
        gu = gu + pad(b, (2, 0)) - 2 * pad(b, (1, 1)) + pad(b, (0, 2))
        c = xy(u)
        c = 4 * c / c.numel() / (sx * sx)
        gu = gu + pad(c, (1, 0, 1, 0)) - pad(c, (0, 1, 1, 0)) - pad(c, (1, 0, 0, 1)) + pad(c, (0, 1, 0, 1))
        return g * gu, None
