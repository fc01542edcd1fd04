import torch


class Rotation6D(torch.autograd.Function):
    """6D representation to rotation matrix (Zhou et al. 2019); rows are b1, b2, b3.

    d6: (N, 6), the first two rows before orthonormalisation.
    """

    @staticmethod
    def forward(ctx, d6):
        a1, a2 = d6[:, :3], d6[:, 3:]
        n1 = a1.norm(dim=1, keepdim=True)
        b1 = a1 / n1
        c = a2 - (b1 * a2).sum(1, keepdim=True) * b1
        n2 = c.norm(dim=1, keepdim=True)
        b2 = c / n2
        ctx.save_for_backward(a2, b1, b2, n1, n2)
        return torch.stack([b1, b2, torch.cross(b1, b2, dim=1)], dim=1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        a2, b1, b2, n1, n2 = ctx.saved_tensors
        g1, g2, g3 = grad.unbind(1)
        dot = lambda p, q: (p * q).sum(1, keepdim=True)
        g1 = g1 + torch.cross(b2, g3, dim=1)
        g2 = g2 + torch.cross(g3, b1, dim=1)
        gc = (g2 - dot(b2, g2) * b2) / n2
        ga2 = gc - dot(b1, gc) * b1
        g1 = g1 - dot(b1, gc) * a2 - dot(b1, a2) * gc
        ga1 = (g1 - dot(b1, g1) * b1) / n1
        return torch.cat([ga1, ga2], dim=1)
