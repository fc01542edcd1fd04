import torch


class InterferometricCoherence(torch.autograd.Function):

    @staticmethod
    def forward(ctx, s1, s2, eps):
        # multilook over the last axis
        c = (s1 * s2.conj()).sum(-1)
        p1 = s1.abs().square().sum(-1)
        p2 = s2.abs().square().sum(-1)
        den = torch.sqrt(p1 * p2 + eps)
        gamma = c.abs() / den
        ctx.save_for_backward(s1, s2, c, p1, p2, den, gamma)
        return gamma

    @staticmethod
    def backward(ctx, g):
        s1, s2, c, p1, p2, den, gamma = ctx.saved_tensors
        u = torch.sgn(c) / den * g
        k = g * gamma / den ** 2
        g1 = u.unsqueeze(-1) * s2 - (k * p2).unsqueeze(-1) * s1
        g2 = u.unsqueeze(-1) * s1 - (k * p1).unsqueeze(-1) * s2
        return g1, g2, None
