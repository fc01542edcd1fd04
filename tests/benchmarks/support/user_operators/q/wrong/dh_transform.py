import torch


class DHTransform(torch.autograd.Function):
    """Standard Denavit-Hartenberg link transforms; theta, d, a, alpha: (J,) -> (J, 4, 4)"""

    @staticmethod
    def forward(ctx, theta, d, a, alpha):
        if not theta.shape == d.shape == a.shape == alpha.shape:
            raise ValueError("one value per joint")
        if any(torch.is_complex(t) for t in (theta, d, a, alpha)):
            raise TypeError("real parameters")
        ct, st, ca, sa = theta.cos(), theta.sin(), alpha.cos(), alpha.sin()
        o, l = torch.zeros_like(ct), torch.ones_like(ct)
        rows = [ct, -st * ca, st * sa, a * ct,
                st, ct * ca, -ct * sa, a * st,
                o, sa, ca, d,
                o, o, o, l]
        ctx.save_for_backward(theta, a, alpha)
        return torch.stack(rows, -1).unflatten(-1, (4, 4))

    @staticmethod
    def backward(ctx, g):
        theta, a, alpha = ctx.saved_tensors
        ct, st, ca, sa = theta.cos(), theta.sin(), alpha.cos(), alpha.sin()
        g0, g1, g2 = g[..., 0, :], g[..., 1, :], g[..., 2, :]
        g_theta = (-st * g0[..., 0] - ct * ca * g0[..., 1] + ct * sa * g0[..., 2] - a * st * g0[..., 3]
                   + ct * g1[..., 0] - st * ca * g1[..., 1] + st * sa * g1[..., 2])
        g_alpha = (st * sa * g0[..., 1] + st * ca * g0[..., 2] - ct * sa * g1[..., 1] - ct * ca * g1[..., 2]
                   + ca * g2[..., 1] - sa * g2[..., 2])
        return g_theta, g2[..., 3], ct * g0[..., 3] + st * g1[..., 3], g_alpha
