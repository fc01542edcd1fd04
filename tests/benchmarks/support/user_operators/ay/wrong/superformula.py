import torch


class Superformula(torch.autograd.Function):
    """Gielis radius r(phi) with a = b = 1; phi (N,), the rest scalar tensors, n2, n3 > 1"""

    @staticmethod
    def forward(ctx, phi, m, n1, n2, n3):
        ctx.save_for_backward(phi, m, n1, n2, n3)
        th = m * phi / 4
        return (th.cos().abs() ** n2 + th.sin().abs() ** n3) ** (-1 / n1)

    @staticmethod
    def backward(ctx, g):
        phi, m, n1, n2, n3 = ctx.saved_tensors
        th = m * phi / 4
        co, si = th.cos(), th.sin()
        c, s = co.abs(), si.abs()
        cn, sn = c ** n2, s ** n3
        S = cn + sn
        r = S ** (-1 / n1)
        gS = -g * r / (n1 * S)
        # x^n log x -> 0 for x -> 0
        logc = torch.where(c > 0, c, torch.ones_like(c)).log()
        logs = s.log()
        gth = gS * (n3 * s ** (n3 - 1) * si.sign() * co - n2 * c ** (n2 - 1) * co.sign() * si)
        g1 = (g * r * S.log()).sum() / n1 ** 2
        g2 = (gS * cn * logc).sum()
        g3 = (gS * sn * logs).sum()
        return gth * m / 4, (gth * phi).sum() / 4, g1, g2, g3
