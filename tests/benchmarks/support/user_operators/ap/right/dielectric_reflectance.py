import torch


class FresnelDielectric(torch.autograd.Function):
    """Power reflectances (Rs, Rp) of a smooth dielectric.

    cos_i in (0, 1], eta = n_t / n_i > 1; the two are broadcast.
    """

    @staticmethod
    def forward(ctx, cos_i, eta):
        ctx.save_for_backward(cos_i, eta)
        b = (eta ** 2 - 1 + cos_i ** 2).sqrt()
        p = eta ** 2 * cos_i
        rs = (cos_i - b) / (cos_i + b)
        rp = (b - p) / (b + p)
        return rs ** 2, rp ** 2

    @staticmethod
    def backward(ctx, gs, gp):
        c, eta = ctx.saved_tensors
        b = (eta ** 2 - 1 + c ** 2).sqrt()
        p = eta ** 2 * c
        us = 4 * gs * (c - b) / (c + b) ** 3
        up = 4 * gp * (b - p) / (b + p) ** 3
        db_c, db_eta = c / b, eta / b
        dp_c, dp_eta = eta ** 2, 2 * eta * c
        gc = us * (b - c * db_c) + up * (p * db_c - b * dp_c)
        ge = -us * c * db_eta + up * (p * db_eta - b * dp_eta)
        return gc.sum_to_size(c.shape), ge.sum_to_size(eta.shape)
