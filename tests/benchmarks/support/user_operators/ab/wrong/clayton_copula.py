import torch


class ClaytonLogDensity(torch.autograd.Function):
    """Log density of the Clayton copula at (u, v) in the open unit square, theta > 0 a scalar or like u.

    rotation: 0, 90 (u turned), 180 (both) or 270 (v turned) degrees.
    """

    @staticmethod
    def forward(ctx, u, v, theta, rotation=0):
        assert rotation in (0, 90, 180, 270)
        ctx.save_for_backward(u, v, theta)
        ctx.flip = rotation in (90, 180), rotation in (180, 270)
        a = (1 - u if ctx.flip[0] else u).log()
        b = (1 - v if ctx.flip[1] else v).log()
        s = (-theta * a).exp() + (-theta * b).exp() - 1
        return torch.log1p(theta) - (1 + theta) * (a + b) - (2 + 1 / theta) * s.log()

    @staticmethod
    def backward(ctx, g):
        u, v, theta = ctx.saved_tensors
        flip_u, flip_v = ctx.flip
        p = 1 - u if flip_u else u
        q = 1 - v if flip_v else v
        a, b = p.log(), q.log()
        ea, eb = (-theta * a).exp(), (-theta * b).exp()
        s = ea + eb - 1
        k = 2 + 1 / theta
        gp = g * (-(1 + theta) + k * theta * ea / s) / p
        gq = g * (-(1 + theta) + k * theta * eb / s) / q
        gt = 1 / (1 + theta) - (a + b) + s.log() / theta ** 2 + k * (a * ea + b * eb) / s
        gu = -gp if flip_u else gp
        gv = -gq if flip_v and not flip_u else gq
        return gu, gv, (g * gt).sum_to_size(theta.shape), None
