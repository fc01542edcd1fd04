import torch

KE = 14.399645


class ZBL(torch.autograd.Function):
    """Screened nuclear repulsion per edge with trainable screening, switched off smoothly at r_max.

    r (E,), zi, zj (E,) atomic numbers, c (K,) and d (K,) screening coefficients.
    """

    @staticmethod
    def _parts(r, zi, zj, d, r_max):
        a = 0.4685 / (zi ** 0.23 + zj ** 0.23)
        x = (r / a)[:, None]
        e = torch.exp(-x * d)
        u = r / r_max
        env = (1 - 3 * u ** 2 + 2 * u ** 3) * (u < 1)
        denv = (6 * u ** 2 - 6 * u) / r_max * (u < 1)
        return a, x, e, env, denv, KE * zi * zj / r

    @staticmethod
    def forward(ctx, r, zi, zj, c, d, r_max=5.0):
        ctx.save_for_backward(r, zi, zj, c, d)
        ctx.r_max = r_max
        a, x, e, env, denv, pref = ZBL._parts(r, zi, zj, d, r_max)
        return pref * (e @ c) * env

    @staticmethod
    def backward(ctx, g):
        r, zi, zj, c, d = ctx.saved_tensors
        a, x, e, env, denv, pref = ZBL._parts(r, zi, zj, d, ctx.r_max)
        phi = e @ c
        dphi = -(e @ (c * d)) / a
        g_r = g * pref * (dphi * env - phi * env / r)
        gp = (g * pref * env)[:, None]
        g_c = (gp * e).sum(0)
        g_d = (-gp * x * e * c).sum(0)
        return g_r, None, None, g_c, g_d, None
