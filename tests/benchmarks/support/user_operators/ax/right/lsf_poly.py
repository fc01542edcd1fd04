import torch


def _times(poly, a, b, c):
    """poly (..., k) times a + b z^-1 + c z^-2"""
    k = poly.shape[-1]
    pad = torch.nn.functional.pad
    return pad(poly * a, (0, 2)) + pad(poly * b, (1, 1)) + pad(poly * c, (2, 0))


def _product(w, seed):
    poly = w.new_tensor(seed).expand(*w.shape[:-1], 2)
    for i in range(w.shape[-1]):
        poly = _times(poly, 1.0, -2 * torch.cos(w[..., i : i + 1]), 1.0)
    return poly


class LSFToLPC(torch.autograd.Function):
    """Line spectral frequencies to the coefficients of the prediction polynomial.

    :param lsf: frequencies in radians, shape ``(..., p)``, p even, ascending and within (0, pi)
    :returns: coefficients ``(..., p + 1)``, the first is one
    """

    @staticmethod
    def forward(ctx, lsf):
        if lsf.shape[-1] % 2:
            raise ValueError("the order must be even")
        ctx.save_for_backward(lsf)
        sym = _product(lsf[..., 0::2], [1.0, 1.0])
        anti = _product(lsf[..., 1::2], [1.0, -1.0])
        return (0.5 * (sym + anti))[..., :-1]

    @staticmethod
    def backward(ctx, grad):
        (lsf,) = ctx.saved_tensors
        p = lsf.shape[-1]
        cols = []
        for i in range(p):
            start = [1.0, 1.0] if i % 2 == 0 else [1.0, -1.0]
            others = [j for j in range(i % 2, p, 2) if j != i]
            rest = _product(lsf[..., others], start)
            # d/dw of -2 cos(w) z^-1, the product delayed by one
            cols.append(torch.sin(lsf[..., i]) * (grad[..., 1:] * rest).sum(-1))
        return torch.stack(cols, -1)
