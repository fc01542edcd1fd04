import torch

R = 8.314462618


class PengRobinson(torch.autograd.Function):
    """Pressure (MPa) from temperature (K), molar volume (cm3/mol) and acentric factor; tensors broadcast."""

    @staticmethod
    def forward(ctx, T, V, omega, Tc=304.13, Pc=7.3773):
        ctx.save_for_backward(T, V, omega)
        ctx.critical = Tc, Pc
        a, b = 0.45724 * (R * Tc) ** 2 / Pc, 0.07780 * R * Tc / Pc
        kappa = 0.37464 + 1.54226 * omega - 0.26992 * omega**2
        root = 1 + kappa * (1 - (T / Tc).sqrt())
        return R * T / (V - b) - a * root**2 / (V * V + 2 * b * V - b * b)

    @staticmethod
    def backward(ctx, g):
        T, V, omega = ctx.saved_tensors
        Tc, Pc = ctx.critical
        a, b = 0.45724 * (R * Tc) ** 2 / Pc, 0.07780 * R * Tc / Pc
        kappa = 0.37464 + 1.54226 * omega - 0.26992 * omega**2
        root = 1 + kappa * (1 - (T / Tc).sqrt())
        den = V * V + 2 * b * V - b * b
        dT = R / (V - b) + a * kappa * root / ((T * Tc).sqrt() * den)
        dV = -R * T / (V - b) ** 2 + a * root**2 * 2 * (V + b) / den**2
        domega = -2 * a * root * (1 - (T / Tc).sqrt()) * (1.54226 - 2 * 0.26992 * omega) / den
        gT = (g * dT).sum_to_size(T.shape)
        gV = (g * dV).sum_to_size(V.shape)
        gw = (g * domega).sum_to_size(omega.shape)
        return gT, gV, gw, None, None
