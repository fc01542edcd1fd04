import torch


class HouseholderFlow(torch.autograd.Function):
    """Apply K Householder reflections H_K ... H_1 to a batch of latents.

    z (B, D), vs (K, D).  The intermediate latents are not kept: every reflection is its
    own inverse, so they are recovered from the output while walking back.
    """

    @staticmethod
    def forward(ctx, z, vs):
        for v in vs:
            z = z - 2 * torch.outer(z @ v, v) / (v @ v)
        ctx.save_for_backward(z, vs)
        return z

    @staticmethod
    def backward(ctx, g):
        z, vs = ctx.saved_tensors
        g_vs = []
        for v in vs.flip(0):
            n = v @ v
            z = z - 2 * torch.outer(z @ v, v) / n
            zv, gv = z @ v, g @ v
            g_v = -2 * (gv @ z + zv @ g) / n + 4 * (zv @ gv) * v / n ** 2
            g_vs.append(g_v)
            g = g - 2 * torch.outer(gv, v) / n
        return g, torch.stack(g_vs[::-1])
