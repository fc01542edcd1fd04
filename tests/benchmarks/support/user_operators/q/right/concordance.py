import torch


class ConcordanceLoss(torch.autograd.Function):
    """1 - Lin's concordance correlation of two series (..., T) -> (...)."""

    @staticmethod
    def stats(x, y):
        mx, my = x.mean(-1, keepdim=True), y.mean(-1, keepdim=True)
        xc, yc = x - mx, y - my
        den = (xc * xc).mean(-1, keepdim=True) + (yc * yc).mean(-1, keepdim=True) + (mx - my) ** 2
        return xc, yc, mx - my, (xc * yc).mean(-1, keepdim=True), den

    @staticmethod
    def forward(ctx, x, y):
        if x.is_complex() or y.is_complex() or x.shape != y.shape:
            raise ValueError("two real series of the same shape")
        ctx.save_for_backward(x, y)
        xc, yc, gap, cov, den = ConcordanceLoss.stats(x, y)
        return (1 - 2 * cov / den).squeeze(-1)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        xc, yc, gap, cov, den = ConcordanceLoss.stats(x, y)
        ccc = 2 * cov / den
        k = g.unsqueeze(-1) * 2 / (x.shape[-1] * den)
        gx = -k * (yc - ccc * (xc + gap))
        gy = -k * (xc - ccc * (yc - gap))
        return gx, gy
