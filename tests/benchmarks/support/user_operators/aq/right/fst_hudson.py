import torch


class HudsonFst(torch.autograd.Function):
    """Hudson's F_ST (ratio of averages) from allele frequencies p1, p2 (L,) and haplotype counts n1, n2."""

    @staticmethod
    def forward(ctx, p1, p2, n1, n2):
        num = (p1 - p2) ** 2 - p1 * (1 - p1) / (n1 - 1) - p2 * (1 - p2) / (n2 - 1)
        den = p1 * (1 - p2) + p2 * (1 - p1)
        ctx.save_for_backward(p1, p2)
        ctx.n = n1, n2
        return num.sum() / den.sum()

    @staticmethod
    def backward(ctx, grad):
        p1, p2 = ctx.saved_tensors
        n1, n2 = ctx.n
        num = (p1 - p2) ** 2 - p1 * (1 - p1) / (n1 - 1) - p2 * (1 - p2) / (n2 - 1)
        den = (p1 * (1 - p2) + p2 * (1 - p1)).sum()
        gn = grad / den
        gd = -grad * num.sum() / den ** 2
        g1 = gn * (2 * (p1 - p2) - (1 - 2 * p1) / (n1 - 1)) + gd * (1 - 2 * p2)
        g2 = gn * (2 * (p2 - p1) - (1 - 2 * p2) / (n2 - 1)) + gd * (1 - 2 * p1)
        return g1, g2, None, None
