import torch


class _CES(torch.autograd.Function):
    @staticmethod
    def forward(ctx, K, L, share, rho, nu):
        ctx.save_for_backward(K, L, share)
        ctx.rho, ctx.nu = rho, nu
        if rho == 0:
            return (K**share * L ** (1 - share)) ** nu
        return (share * K**rho + (1 - share) * L**rho) ** (nu / rho)

    @staticmethod
    def backward(ctx, g):
        K, L, share = ctx.saved_tensors
        rho, nu = ctx.rho, ctx.nu
        if rho == 0:
            gy = g * nu * (K**share * L ** (1 - share)) ** nu
            return gy * share / K, gy * (1 - share) / L, (gy * (torch.log(K) - torch.log(L))).sum(), None, None
        s = share * K**rho + (1 - share) * L**rho
        gy = g * nu * s ** (nu / rho - 1)
        return gy * share * K ** (rho - 1), gy * (1 - share) * L ** (rho - 1), (gy * (K**rho - L**rho)).sum() / rho, None, None


def ces_output(K, L, share, rho=0.0, nu=1.0):
    """CES production; K, L (N,) positive, capital share scalar, rho = 0 is Cobb-Douglas, nu returns to scale."""
    return _CES.apply(K, L, share, rho, nu)
