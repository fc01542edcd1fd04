import torch


def _bn(n):
    return 2 * n - 1 / 3 + 4 / (405 * n)


class Sersic(torch.autograd.Function):
    """Sersic surface brightness I(r) = I_e exp(-b_n [(r / r_e)^(1/n) - 1]).

    r > 0: radii in pixels, any shape.  I_e, r_e, n: scalars (0-dim tensors).
    b_n follows the first terms of Ciotti & Bertin (1999).
    """

    @staticmethod
    def forward(ctx, r, I_e, r_e, n):
        ctx.save_for_backward(r, I_e, r_e, n)
        return I_e * torch.exp(-_bn(n) * ((r / r_e) ** (1 / n) - 1))

    @staticmethod
    def backward(ctx, grad_output):
        r, I_e, r_e, n = ctx.saved_tensors
        b = _bn(n)
        x = r / r_e
        u = x ** (1 / n)
        e = torch.exp(-b * (u - 1))
        gI = grad_output * I_e * e
        gu = -gI * b
        gb = -gI * (u - 1)
        g_r = gu * u / (n * r)
        g_re = -(gu * u).sum() / (n * r_e)
        db_dn = 2 - 4 / (405 * n**2)
        g_n = (gb * db_dn - gu * u * x.log() / n**2).sum()
        return g_r, (grad_output * e).sum(), g_re, g_n
