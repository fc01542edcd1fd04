import torch


def _tanhc(s):
    """tanh(z) / z at z = sqrt(s), and the derivative with respect to s"""
    near = s < 1e-2
    q = torch.where(near, torch.ones_like(s), s)
    z = q.sqrt()
    t = z.tanh()
    f = torch.where(near, 1 - s / 3 + 2 * s ** 2 / 15 - 17 * s ** 3 / 315 + 62 * s ** 4 / 2835, t / z)
    df = torch.where(near, -1 / 3 + 4 * s / 15 - 17 * s ** 2 / 105 + 248 * s ** 3 / 2835, (1 - t * t - t / z) / (2 * q))
    return f, df


class ExpMap0(torch.autograd.Function):
    """Exponential map at the origin of the Poincare ball of curvature -c (0-d tensor, c > 0)."""

    @staticmethod
    def forward(ctx, v, c):
        ctx.save_for_backward(v, c)
        return _tanhc(c * (v * v).sum(-1, keepdim=True))[0] * v

    @staticmethod
    def backward(ctx, g):
        v, c = ctx.saved_tensors
        v2 = (v * v).sum(-1, keepdim=True)
        f, df = _tanhc(c * v2)
        inner = (g * v).sum(-1, keepdim=True) * df
        gv = f * g + 2 * inner * v
        return gv, (inner * v2).sum().view_as(c)
