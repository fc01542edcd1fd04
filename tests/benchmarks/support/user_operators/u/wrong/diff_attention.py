import torch


class DiffAttention(torch.autograd.Function):
    """(softmax(q1 k1^T s) - lam softmax(q2 k2^T s)) v, all (..., T, d), lam a scalar tensor"""

    @staticmethod
    def forward(ctx, q1, k1, q2, k2, v, lam):
        s = q1.shape[-1] ** -0.5
        a1 = torch.softmax(q1 @ k1.transpose(-1, -2) * s, -1)
        a2 = torch.softmax(q2 @ k2.transpose(-1, -2) * s, -1)
        ctx.save_for_backward(q1, k1, q2, k2, v, lam)
        return (a1 - lam * a2) @ v

    @staticmethod
    def backward(ctx, g):
        q1, k1, q2, k2, v, lam = ctx.saved_tensors
        s = q1.shape[-1] ** -0.5
        a1 = torch.softmax(q1 @ k1.transpose(-1, -2) * s, -1)
        a2 = torch.softmax(q2 @ k2.transpose(-1, -2) * s, -1)
        gv = (a1 - lam * a2).transpose(-1, -2) @ g
        ga = g @ v.transpose(-1, -2)
        g_lam = -(ga * a2).sum()
        g1 = a1 * (ga - (ga * a1).sum(-1, keepdim=True)) * s
        g2 = -a2 * (ga - (ga * a2).sum(-1, keepdim=True)) * s
        return g1 @ k1, g1.transpose(-1, -2) @ q1, g2 @ k2, g2.transpose(-1, -2) @ q2, gv, g_lam
