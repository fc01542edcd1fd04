import torch


class JohnsonCook(torch.autograd.Function):
    """Flow stress (A + B e^n)(1 + C ln(rate / rate0))(1 - T*^m).

    strain > 0, rate > 0, temp (N,); constants (5,) = A, B, n, C, m; no rate effect under rate0, T* in [0, 1]
    """

    @staticmethod
    def _parts(strain, rate, temp, constants, rate0, t_room, t_melt):
        A, B, n, C, m = constants.unbind(0)
        log_rate = torch.log(rate / rate0).clamp(min=0)
        hom = ((temp - t_room) / (t_melt - t_room)).clamp(0, 1)
        warm = hom > 0
        safe = torch.where(warm, hom, torch.ones_like(hom))
        soft = torch.where(warm, safe**m, torch.zeros_like(hom))
        return A + B * strain**n, 1 + C * log_rate, 1 - soft, log_rate, safe, soft

    @staticmethod
    def forward(ctx, strain, rate, temp, constants, rate0, t_room, t_melt):
        ctx.save_for_backward(strain, rate, temp, constants)
        ctx.ref = rate0, t_room, t_melt
        f1, f2, f3, *_ = JohnsonCook._parts(strain, rate, temp, constants, *ctx.ref)
        return f1 * f2 * f3

    @staticmethod
    def backward(ctx, g):
        strain, rate, temp, constants = ctx.saved_tensors
        rate0, t_room, t_melt = ctx.ref
        A, B, n, C, m = constants.unbind(0)
        f1, f2, f3, log_rate, safe, soft = JohnsonCook._parts(strain, rate, temp, constants, *ctx.ref)
        g1, g2, g3 = g * f2 * f3, g * f1 * f3, g * f1 * f2
        power = strain**n
        g_strain = g1 * B * n * strain ** (n - 1)
        g_rate = g2 * C / rate * (rate > rate0)
        inside = (temp > t_room) & (temp < t_melt)
        g_temp = -g3 * m * soft / safe / (t_melt - t_room) * inside
        g_const = torch.stack([g1.sum(), (g1 * power).sum(), (g1 * B * power * torch.log(strain)).sum(),
                               (g2 * log_rate).sum(), -(g3 * soft * torch.log(safe)).sum()])
        return g_strain, g_rate, g_temp, g_const, None, None
