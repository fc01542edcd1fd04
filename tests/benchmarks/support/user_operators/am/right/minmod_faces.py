import torch
from torch import nn
from torch.autograd import Function


def _differences(u, bc):
    if bc == "periodic":
        d = u.roll(-1, -1) - u
        return d.roll(1, -1), d
    d = u[..., 1:] - u[..., :-1]
    return torch.cat([d[..., :1], d], -1), torch.cat([d, d[..., -1:]], -1)


def _choice(dm, dp, theta):
    same = dm * dp > 0
    a, b, c = theta * dm.abs(), theta * dp.abs(), 0.5 * (dm + dp).abs()
    mid = same & (c <= torch.minimum(a, b))
    low = same & ~mid & (a < b)
    return mid, low, same & ~mid & ~low


class _Faces(Function):
    @staticmethod
    def forward(ctx, u, theta, bc):
        ctx.save_for_backward(u)
        ctx.theta, ctx.bc = theta, bc
        dm, dp = _differences(u, bc)
        mid, low, high = _choice(dm, dp, theta)
        s = 0.5 * mid * (dm + dp) + theta * (low * dm + high * dp)
        return u - s / 2, u + s / 2

    @staticmethod
    def backward(ctx, gl, gr):
        u, = ctx.saved_tensors
        mid, low, high = _choice(*_differences(u, ctx.bc), ctx.theta)
        gs = (gr - gl) / 2
        gm = gs * (0.5 * mid + ctx.theta * low)
        gp = gs * (0.5 * mid + ctx.theta * high)
        gu = gl + gr
        if ctx.bc == "periodic":
            gd = gp + gm.roll(-1, -1)
            return gu + gd.roll(1, -1) - gd, None, None
        gd = gp[..., :-1] + gm[..., 1:]
        gd[..., 0] += gm[..., 0]
        gd[..., -1] += gp[..., -1]
        zero = torch.zeros_like(gu[..., :1])
        return gu + torch.cat([zero, gd], -1) - torch.cat([gd, zero], -1), None, None


class MinmodFaces(nn.Module):
    """Limited linear reconstruction: cell averages (..., N) -> values at the left and right faces.

    theta in [1, 2] (generalised minmod), bc "periodic" or "linear" (extrapolated ends), N > 2.
    """

    def __init__(self, theta=1.5, bc="periodic"):
        super().__init__()
        if bc not in ("periodic", "linear"):
            raise ValueError(bc)
        self.theta, self.bc = theta, bc

    def forward(self, u):
        return _Faces.apply(u, self.theta, self.bc)
