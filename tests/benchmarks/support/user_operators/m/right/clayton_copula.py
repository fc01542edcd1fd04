import torch


class ClaytonLogDensity(torch.autograd.Function):
    """Log density of the bivariate Clayton copula, theta > 0 (scalar tensor)."""

    @staticmethod
    def forward(ctx, u, v, theta):
        if u.shape != v.shape:
            raise ValueError("u and v must have the same shape")
        ctx.save_for_backward(u, v, theta)
        s = u.pow(-theta) + v.pow(-theta) - 1
        return (
            torch.log1p(theta)
            - (1 + theta) * (u.log() + v.log())
            - (2 + 1 / theta) * s.log()
        )

    @staticmethod
    def backward(ctx, g):
        u, v, theta = ctx.saved_tensors
        ut, vt = u.pow(-theta), v.pow(-theta)
        s = ut + vt - 1
        k = 2 * theta + 1
        du = -(1 + theta) / u + k * ut / (u * s)
        dv = -(1 + theta) / v + k * vt / (v * s)
        dtheta = (
            1 / (1 + theta)
            - u.log() - v.log()
            + s.log() / theta**2
            + (2 + 1 / theta) * (ut * u.log() + vt * v.log()) / s
        )
        return g * du, g * dv, (g * dtheta).sum().reshape(theta.shape)
