import torch


class FresnelReflectance(torch.autograd.Function):
    """
    Power reflectances of a dielectric interface.

    cos_i : cosine of the angle of incidence, in (0, 1]
    eta   : n1 / n2, same shape, below total reflection
    -> (R_s, R_p)
    """

    @staticmethod
    def forward(ctx, cos_i, eta):
        cos_t = torch.sqrt(1 - eta ** 2 * (1 - cos_i ** 2))
        rs = (eta * cos_i - cos_t) / (eta * cos_i + cos_t)
        rp = (eta * cos_t - cos_i) / (eta * cos_t + cos_i)
        ctx.save_for_backward(cos_i, eta)
        return rs ** 2, rp ** 2

    @staticmethod
    def backward(ctx, gRs, gRp):
        ci, eta = ctx.saved_tensors
        ct = torch.sqrt(1 - eta ** 2 * (1 - ci ** 2))
        a, b = eta * ci + ct, eta * ct + ci
        rs, rp = (eta * ci - ct) / a, (eta * ct - ci) / b
        gs, gp = 2 * rs * gRs, 2 * rp * gRp
        g_ct = -gs * 2 * eta * ci / a ** 2 + gp * 2 * eta * ci / b ** 2
        g_ci = gs * 2 * eta * ct / a ** 2 - gp * 2 * eta * ct / b ** 2
        g_eta = 2 * ci * ct * (gs / a ** 2 + gp / b ** 2)
        g_ci = g_ci + g_ct * eta ** 2 * ci / ct
        g_eta = g_eta - g_ct * eta * (1 - ci ** 2) / ct
        return g_ci, g_eta
